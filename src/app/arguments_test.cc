#include "app/arguments.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "app/serve_flags.h"
#include "base/testing/scratch_directory.h"
#include "local/vllm_flags.h"

namespace octavo {
namespace {

using Arguments = std::vector<std::string>;

class ArgumentsTest : public ::testing::Test {
 protected:
  ArgumentsTest() { add_serve_flags(serve_, command_); }

  Arguments read(const Arguments& given) {
    auto read = read_arguments(serve_, given);
    EXPECT_TRUE(read) << read.error().field << " " << read.error().message;
    return read.value_or(Arguments{});
  }
  std::string error(const Arguments& given) {
    const auto read = read_arguments(serve_, given);
    return read ? "accepted" : read.error().field + " " + read.error().message;
  }

  ServeCommand command_;
  CLI::App serve_{"", "serve"};
};

TEST_F(ArgumentsTest, SpellingsOfVllmBecomeOptions) {
  EXPECT_EQ(read({"model", "--max_num_seqs", "8"}), (Arguments{"model", "--max-num-seqs", "8"}));
  EXPECT_EQ(read({"--max_num_seqs=8"}), (Arguments{"--max-num-seqs=8"}));
  EXPECT_EQ(read({"--no-enable-prefix-caching"}), (Arguments{"--enable-prefix-caching=false"}));
  EXPECT_EQ(read({"--no-enforce_eager"}), (Arguments{"--enforce-eager=false"}));
  EXPECT_EQ(read({"--max-model-len", "-1"}), (Arguments{"--max-model-len", "-1"}));
  EXPECT_EQ(read({"-dcp", "1", "-O3", "-cc.level", "3", "m"}), (Arguments{"m"}));
  EXPECT_EQ(read({"-dcp=1", "--decode_context_parallel_size=1", "-q", "int8"}),
            (Arguments{"--quantization", "int8"}));
  EXPECT_EQ(read({"--cudagraph-capture-sizes", "1", "2", "4", "--port", "1"}), (Arguments{"--port", "1"}));
  EXPECT_EQ(read({"--hf-token", "--enforce-eager"}), (Arguments{"--hf-token", "--enforce-eager"}));
}

TEST_F(ArgumentsTest, ASwitchHasAnInverse) {
  EXPECT_EQ(read({"--disable-prefix-caching"}), (Arguments{"--enable-prefix-caching=false"}));
  EXPECT_EQ(read({"--enable-log-stats"}), (Arguments{"--disable-log-stats=false"}));
  EXPECT_EQ(read({"--disable-log-stats"}), (Arguments{"--disable-log-stats"}));
  EXPECT_EQ(error({"--disable-max-num-seqs"}).substr(0, 41), "--disable-max-num-seqs is not a flag of t");
}

TEST_F(ArgumentsTest, APrefixOfOneFlagIsThisFlag) {
  EXPECT_EQ(read({"--max-num-seq", "4"}), (Arguments{"--max-num-seqs", "4"}));
  EXPECT_EQ(read({"--lora_module=a=b"}), (Arguments{"--lora-modules=a=b"}));
  EXPECT_EQ(read({"--no-enable-prefix-cach"}), (Arguments{"--enable-prefix-caching=false"}));
  EXPECT_EQ(read({"--speculative-conf.method", "ngram"}),
            (Arguments{R"(--speculative-config={"method":"ngram"})"}));
  EXPECT_EQ(read({"--served-model", "m", "--max-num-seqs", "4"}),
            (Arguments{"--served-model-name", "m", "--max-num-seqs", "4"}));
  EXPECT_EQ(error({"--max-num", "4"}).substr(0, 57),
            "--max-num is not a flag of this command; did you mean --m");
}

TEST_F(ArgumentsTest, DottedNamesBecomeOneJsonObject) {
  EXPECT_EQ(
      read({"--speculative-config.method", "ngram", "--port", "1",
            "--speculative_config.num_speculative_tokens=4", "--speculative-config.a.b+", "x,2"}),
      (Arguments{"--port", "1",
                 R"(--speculative-config={"method":"ngram","num_speculative_tokens":4,"a":{"b":["x",2]}})"}));
}

TEST_F(ArgumentsTest, AFlagMayStandForAFieldOfAnother) {
  EXPECT_EQ(
      read({"--spec-method=ngram", "--spec-tokens", "4", "--port", "1"}),
      (Arguments{"--port", "1", R"(--speculative-config={"method":"ngram","num_speculative_tokens":4})"}));
  EXPECT_EQ(error({"--spec-tokens"}), "--speculative-config.num_speculative_tokens needs a value");
}

TEST_F(ArgumentsTest, AFlagIsNoValueOfTheFlagBeforeIt) {
  for (const char* flag :
       {"--api-key", "--served-model-name", "--lora-modules", "--host", "--max-num-seqs"}) {
    EXPECT_EQ(error({flag, "--port", "8111"}), flag + std::string(" needs a value"));
    EXPECT_EQ(error({flag}), flag + std::string(" needs a value"));
  }
  EXPECT_EQ(error({"--spec-tokens", "--port", "8111"}),
            "--speculative-config.num_speculative_tokens needs a value");
  EXPECT_EQ(error({"--config", "--port", "8111"}), "--config needs a file");
  EXPECT_EQ(read({"--api-key", "a", "b", "--port", "1"}), (Arguments{"--api-key", "a", "b", "--port", "1"}));
  EXPECT_EQ(read({"--api-key=--port"}), (Arguments{"--api-key=--port"}));
}

TEST_F(ArgumentsTest, WhatWouldMeanSomethingElseIsRefusedByName) {
  EXPECT_EQ(error({"-dcp", "2"}),
            "--decode-context-parallel-size 2 is not supported, only 1: the server does not divide a context "
            "among ranks");
  EXPECT_EQ(error({"--data-parallel-multi-port-external-lb"}),
            "--data-parallel-multi-port-external-lb is not supported: engines and ranks of this server do "
            "not need it; see docs/guides/parallel.md");
  EXPECT_EQ(error({"--no-data-parallel-multi-port-external-lb"}), "accepted");
  EXPECT_EQ(error({"--swap-space"}), "--swap-space needs a value");
  EXPECT_EQ(error({"--max-num-seks", "4"}),
            "--max-num-seks is not a flag of this command; did you mean --max-num-seqs?");
  EXPECT_EQ(error({"--qwertyuiop"}), "--qwertyuiop is not a flag of this command; --help lists them");
  EXPECT_EQ(error({"--cpu-offload-gb", "0.0"}), "accepted");
  EXPECT_EQ(error({"--tokenizer_mode", "mistral", "--config_format", "mistral", "--load_format", "mistral"}),
            "accepted");
}

TEST_F(ArgumentsTest, ConfigFilesStandBehindTheCommandLine) {
  const ScratchDirectory dir;
  const std::string file = (dir / "serve.yaml").string();
  std::ofstream(file) << "model: other\nport: 8001\nmax_num_seqs: 16\nenforce-eager: true\n"
                         "enable-prefix-caching: false\nserved-model-name: [a, b]\n"
                         "speculative-config:\n  method: ngram\n  num_speculative_tokens: 3\n";
  EXPECT_EQ(
      read({"model", "--config", file, "--port", "9"}),
      (Arguments{"model", "--max-num-seqs=16", "--enforce-eager=true", "--enable-prefix-caching=false",
                 "--served-model-name", "a", "b",
                 R"(--speculative-config={"method":"ngram","num_speculative_tokens":3})", "--port", "9"}));
  std::ofstream(file) << "port: [1";
  EXPECT_NE(error({"--config", file}).find("is not YAML"), std::string::npos);
  std::ofstream(file) << "- port";
  EXPECT_EQ(error({"--config=" + file}),
            "config must be a YAML mapping of flag names to values (example: port: 8000)");
  EXPECT_NE(error({"--config", "no/such/file.yaml"}).find("cannot be read"), std::string::npos);
}

TEST_F(ArgumentsTest, TheTableIsTrue) {
  std::set<std::string_view> names;
  for (const VllmFlag& flag : vllm_flags()) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name << " is there twice";
    EXPECT_EQ(flag.works, serve_.get_option_no_throw(std::string(flag.name)) != nullptr) << flag.name;
    EXPECT_EQ(flag.works, flag.reason.empty()) << flag.name;
  }
}

}  // namespace
}  // namespace octavo
