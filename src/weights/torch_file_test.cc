#include "weights/torch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tensor/mapped_file.h"
#include "weights/checkpoint.h"
#include "weights/pickle.h"
#include "weights/safetensors.h"
#include "weights/zip_archive.h"

namespace octavo {
namespace {

using testing::HasSubstr;

const std::string kRoot = "tests/data/torch/";

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string whole(const std::string& path) {
  const MappedFile file = MappedFile::open(path).value();
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::string error_of(std::string_view file) {
  const auto tensors = parse_torch_file(bytes_of(file), "x.bin");
  return tensors ? "accepted" : tensors.error().message;
}

void expect_equal(std::span<const StoredTensor> read, std::span<const StoredTensor> expected) {
  ASSERT_EQ(read.size(), expected.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].name, expected[i].name);
    EXPECT_EQ(read[i].format, expected[i].format) << read[i].name;
    EXPECT_EQ(read[i].dtype, expected[i].dtype) << read[i].name;
    EXPECT_EQ(read[i].shape, expected[i].shape) << read[i].name;
    EXPECT_TRUE(std::ranges::equal(read[i].bytes, expected[i].bytes)) << read[i].name;
  }
}

TEST(TorchFile, HoldsWhatSafetensorsHold) {
  const std::string expected = whole(kRoot + "formats.safetensors");
  for (const char* name : {"formats.bin", "formats-old.bin"}) {
    const std::string file = whole(kRoot + name);
    const auto tensors = parse_torch_file(bytes_of(file), name);
    ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
    expect_equal(*tensors, parse_safetensors(bytes_of(expected), "expected").value());
  }
}

TEST(TorchFile, ShardsOfAModel) {
  const Checkpoint checkpoint = Checkpoint::open(kRoot + "opt").value();
  expect_equal(checkpoint.tensors(), Checkpoint::open("tests/data/models/opt")->tensors());
}

TEST(TorchFile, WhatIsNoDictionaryOfTensorsIsRefusedByName) {
  const auto refusal = [](const std::string& name) {
    return error_of(whole(kRoot + "refused/" + name + ".bin"));
  };
  EXPECT_THAT(refusal("transposed"),
              HasSubstr("tensor w [3, 2] must be stored row by row, but has the strides 1, 3"));
  EXPECT_THAT(refusal("sparse"),
              HasSubstr("w must be a dense tensor, got torch._utils._rebuild_sparse_tensor"));
  EXPECT_THAT(refusal("nested"), HasSubstr("epoch must be a dense tensor, got other data"));
  EXPECT_THAT(refusal("tensor"), HasSubstr("must contain a dictionary of tensors"));
  EXPECT_THAT(refusal("call"), HasSubstr("w must be a dense tensor, got posix.system"));
  EXPECT_THAT(refusal("complex"), HasSubstr("unknown storage torch.ComplexFloatStorage"));
}

TEST(TorchFile, EveryTruncationIsAnError) {
  for (const char* name : {"formats.bin", "formats-old.bin"}) {
    const std::string file = whole(kRoot + name);
    for (std::size_t size = 0; size < file.size(); ++size)
      ASSERT_NE(error_of(std::string(file, 0, size)), "accepted") << name << " " << size;
  }
}

TEST(TorchFile, DamageIsAnErrorOrChangesNothingOutside) {
  for (const char* name : {"formats.bin", "formats-old.bin"}) {
    const std::string file = whole(kRoot + name);
    for (std::size_t at = 0; at < file.size(); ++at)
      for (const char flip : {'\x01', '\x80', '\xff'}) {
        std::string damaged = file;
        damaged[at] ^= flip;
        const auto tensors = parse_torch_file(bytes_of(damaged), name);
        if (!tensors) continue;
        const auto all = bytes_of(damaged);
        for (const StoredTensor& tensor : *tensors)
          ASSERT_TRUE(tensor.bytes.empty() ||
                      (tensor.bytes.data() >= all.data() &&
                       tensor.bytes.data() + tensor.bytes.size() <= all.data() + all.size()));
      }
  }
}

std::string pickle_error(std::string_view code) {
  const auto pickle = read_pickle(bytes_of(code), "x");
  return pickle ? "accepted" : pickle.error().message;
}

TEST(Pickle, ReadsData) {
  using namespace std::string_view_literals;
  const auto top = [](std::string_view code) {
    Pickle pickle = read_pickle(bytes_of(code), "x").value();
    EXPECT_EQ(pickle.bytes, code.size());
    return pickle;
  };
  EXPECT_EQ(top("\x80\x02J\xfe\xff\xff\xff."sv).top->integer, -2);
  EXPECT_EQ(top("\x8a\x02\x00\x80."sv).top->integer, -32768);
  EXPECT_EQ(top("\x8a\x00."sv).top->integer, 0);
  EXPECT_EQ(top("G\x3f\xf8\x00\x00\x00\x00\x00\x00."sv).top->real, 1.5);
  EXPECT_EQ(top("\x8c\x02hi."sv).top->text, "hi");
  EXPECT_EQ(top("(K\x01K\x02t."sv).top->items.size(), 2u);
  const Pickle call = top("\x8c\x02os\x8c\x06system\x93\x8c\x02ls\x85R."sv);
  EXPECT_TRUE(call.top->is_call_of("os.system"));
  const Pickle circle =
      top("]q\x00h\x00"
          "a."sv);
  EXPECT_EQ(circle.top->items.at(0), circle.top);
}

TEST(Pickle, RefusesWhatIsNone) {
  using namespace std::string_view_literals;
  EXPECT_THAT(pickle_error(""sv), HasSubstr("it ends early"));
  EXPECT_THAT(pickle_error("."sv), HasSubstr("an empty stack at the end"));
  EXPECT_THAT(pickle_error("t."sv), HasSubstr("there is no mark"));
  EXPECT_THAT(pickle_error("N(0."sv), HasSubstr("the stack is empty"));
  EXPECT_THAT(pickle_error("h\x05."sv), HasSubstr("nothing was kept"));
  EXPECT_THAT(pickle_error("Na."sv), HasSubstr("the stack is empty"));
  EXPECT_THAT(pickle_error("NNa."sv), HasSubstr("items of what cannot have any"));
  EXPECT_THAT(pickle_error("}(Nu."sv), HasSubstr("a key without a value"));
  EXPECT_THAT(pickle_error("\xff."sv), HasSubstr("byte 0: unknown opcode 0xff"));
  EXPECT_THAT(pickle_error("\x8a\x09."sv), HasSubstr("more than 64 bits"));
  EXPECT_THAT(pickle_error(std::string(kPickleValuesMax + 1, 'N') + "."),
              HasSubstr("more than 4000000 values"));
}

TEST(Zip, RefusesWhatIsCompressed) {
  std::string file = whole(kRoot + "formats.bin");
  const std::size_t entry = file.find("PK\x01\x02");
  file[entry + 10] = 8;  // compression method: deflate
  EXPECT_THAT(error_of(file), HasSubstr("is compressed or encrypted"));
}

}  // namespace
}  // namespace octavo
