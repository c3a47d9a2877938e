#include "grammar/regex.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "grammar/limits.h"
#include "grammar/text_position.h"
#include "grammar/unicode.h"
#include "grammar/word_boundaries.h"

namespace octavo::grammar {

namespace {

// Converts the syntax tree of a regex to expressions. For a search, it adds any text before and after the
// match, except at an end with an anchor.
class Writer {
 public:
  Writer(Grammar& grammar, std::string_view pattern, const RegexTree& tree, RegexMatch match,
         std::string_view field)
      : grammar_(grammar), pattern_(pattern), tree_(tree), match_(match), field_(field) {
    anchors_.resize(tree.nodes.size());
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {  // children have smaller indices than their parents
      const RegexNode& node = tree.nodes[i];
      anchors_[i] = node.kind == RegexNode::Kind::begin || node.kind == RegexNode::Kind::end;
      for (const std::uint32_t child : node.children) anchors_[i] = anchors_[i] || anchors_[child];
    }
  }

  Result<ExprId> write(std::uint32_t id, bool at_begin, bool at_end) {
    const RegexNode& node = tree_.nodes[id];
    switch (node.kind) {
      case RegexNode::Kind::alternatives: {
        std::vector<ExprId> branches;
        for (const std::uint32_t child : node.children) {
          TRY(branches.emplace_back(), write(child, at_begin, at_end));
        }
        return grammar_.choice(std::move(branches));
      }
      case RegexNode::Kind::sequence:
        return write_sequence(node.children, at_begin, at_end);
      case RegexNode::Kind::begin:
      case RegexNode::Kind::end:
      case RegexNode::Kind::boundary:
      case RegexNode::Kind::no_boundary:
      case RegexNode::Kind::set:
      case RegexNode::Kind::repeat:
        return write_sequence({id}, at_begin, at_end);
    }
    return grammar_.nothing();
  }

 private:
  Result<ExprId> write_sequence(const std::vector<std::uint32_t>& all, bool at_begin, bool at_end) {
    using Kind = RegexNode::Kind;
    std::size_t first = 0, last = all.size();
    while (first < last && tree_.nodes[all[first]].kind == Kind::begin) ++first;
    while (last > first && tree_.nodes[all[last - 1]].kind == Kind::end) --last;
    if (first > 0 && !at_begin) return misplaced(all[0]);
    if (last < all.size() && !at_end) return misplaced(all[last]);
    bool open_begin = at_begin && first == 0, open_end = at_end && last == all.size();

    std::vector<ExprId> parts;
    for (std::size_t i = first; i < last; ++i) {
      // An anchor in the first or last group of the pattern applies to that end of the pattern.
      const bool group = anchors_[all[i]] && (tree_.nodes[all[i]].kind == Kind::alternatives ||
                                              tree_.nodes[all[i]].kind == Kind::sequence);
      const bool begin_here = group && i == first && open_begin,
                 end_here = group && i + 1 == last && open_end;
      if (begin_here) open_begin = false;
      if (end_here) open_end = false;
      TRY(parts.emplace_back(), group ? write(all[i], begin_here, end_here) : write_atom(all[i]));
    }
    if (open_begin && match_ == RegexMatch::search) parts.insert(parts.begin(), anything());
    if (open_end && match_ == RegexMatch::search) parts.push_back(anything());
    return parts.empty() ? grammar_.empty() : grammar_.sequence(std::move(parts));
  }

  Result<ExprId> write_atom(std::uint32_t id) {
    const RegexNode& node = tree_.nodes[id];
    if (node.kind == RegexNode::Kind::set) return write_set(node);
    if (node.kind == RegexNode::Kind::boundary) return grammar_.byte_range(kBoundaryMark, kBoundaryMark);
    if (node.kind == RegexNode::Kind::no_boundary) return grammar_.byte_range(kNoBoundaryMark, kNoBoundaryMark);
    if (node.kind == RegexNode::Kind::repeat) {
      TRY(const ExprId body, write(node.children[0], false, false));
      return grammar_.repeat(body, node.min, node.max);
    }
    return write(id, false, false);
  }

  // Converts each distinct set only once. A set of many ranges becomes a minimal automaton, which has fewer
  // states than a choice.
  Result<ExprId> write_set(const RegexNode& node) {
    const auto [known, fresh] = sets_.try_emplace(node.set.normalized().ranges);
    if (!fresh) return known->second;
    constexpr std::size_t kFewRanges = 32;
    const std::size_t count = known->first.size();
    ranges_ += count;
    if (ranges_ > kClassRangesMax)
      return invalid(field_,
                     "regex, {}: the classes up to here have more than {} ranges of characters in total; use "
                     "simpler classes",
                     line_and_column(pattern_, node.position), kClassRangesMax);
    if (count <= kFewRanges) return known->second = code_point_expr(grammar_, node.set);
    Grammar apart;
    auto automaton = regular_automaton(apart, code_point_expr(apart, node.set), kDfaStatesMax);
    return known->second = grammar_.leaf(*std::move(automaton));
  }

  std::unexpected<Error> misplaced(std::uint32_t id) const {
    return invalid(
        field_,
        "regex, {}: the anchors ^ and $ are supported only at the two ends of the pattern; to match "
        "the character, write a backslash before it",
        line_and_column(pattern_, tree_.nodes[id].position));
  }

  ExprId anything() {
    if (!anything_) {
      CodePointSet all;
      all.add(0, kCodePointMax);
      anything_ = grammar_.repeat(code_point_expr(grammar_, all), 0, kUnbounded);
    }
    return *anything_;
  }

  Grammar& grammar_;
  const std::string_view pattern_;
  const RegexTree& tree_;
  const RegexMatch match_;
  const std::string_view field_;
  std::vector<bool> anchors_;
  std::optional<ExprId> anything_;
  std::map<std::vector<CodePointRange>, ExprId> sets_;
  std::size_t ranges_ = 0;
};

}  // namespace

Result<ExprId> add_regex(Grammar& grammar, std::string_view pattern, RegexMatch match, std::string_view field,
                         RegexFlags flags) {
  TRY(const RegexTree tree, parse_regex(pattern, field, flags));
  if (has_boundaries(tree)) {
    Grammar marked;
    TRY(const ExprId expr, Writer(marked, pattern, tree, match, field).write(tree.root, true, true));
    auto automaton = without_marks(marked, expr);
    if (!automaton)
      return invalid(field,
                     "regex: the pattern with its word boundaries needs more than {} states; remove a \\b, "
                     "or shorten the pattern",
                     kDfaStatesMax);
    return grammar.leaf(*std::move(automaton));
  }
  return Writer(grammar, pattern, tree, match, field).write(tree.root, true, true);
}

Result<Grammar> regex_grammar(std::string_view pattern) {
  Grammar grammar;
  TRY(const ExprId body, add_regex(grammar, pattern, RegexMatch::full, "regex"));
  grammar.root = grammar.rule("the regex", body);
  return within_limits(std::move(grammar));
}

}  // namespace octavo::grammar
