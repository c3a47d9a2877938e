// Runs XGrammar from C++, as Octavo is run, for bench_engines.py, which builds this program with the
// sources of XGrammar's package.
//
// stdin: the number of tokens, then each token as hex. The last token ends the text. Two lines follow for
// each case: a JSON Schema, and tokens that follow it.
//
// stdout: one JSON object for each case, {"us": compile time, "walks": [{"masks": [..], "accepts": [..]},
// ..]} or {"error": ".."}. Times are in microseconds. There is one walk for each matcher.
#include <dlpack/dlpack.h>
#include <xgrammar/xgrammar.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

template <class Action>
double timed(Action&& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

void print(const char* name, const std::vector<double>& times) {
  std::printf("\"%s\":[", name);
  for (std::size_t i = 0; i < times.size(); ++i) std::printf("%s%.3f", i ? "," : "", times[i]);
  std::printf("]");
}

void walk(const xgrammar::CompiledGrammar& grammar, const std::vector<int>& tokens, DLTensor* row,
          const std::int32_t* words) {
  xgrammar::GrammarMatcher matcher(grammar);
  std::vector<double> masks, accepts;
  for (const int token : tokens) {
    masks.push_back(timed([&] { matcher.FillNextTokenBitmask(row); }));
    if ((static_cast<std::uint32_t>(words[token / 32]) >> (token % 32) & 1) == 0) break;
    accepts.push_back(timed([&] { matcher.AcceptToken(token); }));
  }
  std::printf("{");
  print("masks", masks);
  std::printf(",");
  print("accepts", accepts);
  std::printf("}");
}

}  // namespace

int main() {
  std::string line;
  std::getline(std::cin, line);
  std::vector<std::string> tokens(std::stoul(line));
  for (std::string& token : tokens) {
    std::getline(std::cin, line);
    for (std::size_t i = 0; i + 1 < line.size(); i += 2)
      token.push_back(static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16)));
  }
  const auto end = static_cast<std::int32_t>(tokens.size() - 1);
  const xgrammar::TokenizerInfo info(tokens, xgrammar::VocabType::RAW, std::nullopt, std::vector{end});
  xgrammar::GrammarCompiler compiler(info, 1, false);
  std::vector<std::int32_t> words((tokens.size() + 31) / 32);
  std::int64_t shape[1] = {static_cast<std::int64_t>(words.size())};
  DLTensor row{words.data(), {kDLCPU, 0}, 1, {kDLInt, 32, 1}, shape, nullptr, 0};
  for (std::string schema; std::getline(std::cin, schema) && std::getline(std::cin, line); std::fflush(stdout)) {
    std::istringstream numbers(line);
    std::vector<int> path;
    for (int token; numbers >> token;) path.push_back(token);
    try {
      std::optional<xgrammar::CompiledGrammar> grammar;
      const double us = timed([&] {
        grammar = compiler.CompileJSONSchema(schema, false, std::nullopt, std::pair<std::string, std::string>(",", ":"));
      });
      std::printf("{\"us\":%.3f,\"walks\":[", us);
      walk(*grammar, path, &row, words.data());
      std::printf(",");
      walk(*grammar, path, &row, words.data());
      std::printf("]}\n");
    } catch (const std::exception&) {
      std::printf("{\"error\":\"refused\"}\n");
    }
  }
}
