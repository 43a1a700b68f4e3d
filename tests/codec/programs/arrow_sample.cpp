// arrow_sample FILE SEED: a table of random rows as an Arrow stream in FILE, and the same rows on standard output as
// JSON, one row a line. For the test that compares with pyarrow.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>

#include "base/json_writer.h"
#include "codec/arrow_stream.h"

int main(int count, char** words) {
  using namespace lmemo;
  if (count != 3) return 2;
  std::mt19937 random(static_cast<unsigned>(std::atoi(words[2])));
  std::ofstream file(words[1], std::ios::binary);
  const std::vector<ArrowColumn> columns = {{"input_ids", ArrowType::int32, true},
                                            {"attention_mask", ArrowType::int8, true},
                                            {"length", ArrowType::int64, false},
                                            {"ratio", ArrowType::float32, false}};
  ArrowStreamWriter writer(columns, [&](Bytes bytes) -> Status {
    file.write(text_of(bytes).data(), static_cast<std::streamsize>(bytes.size()));
    return {};
  });
  bool ok = writer.begin().ok();
  JsonWriter json;
  json.begin_array();
  for (unsigned batch = 0, batches = random() % 4; batch < batches; ++batch) {
    std::vector<int32_t> offsets = {0}, ids;
    std::vector<int8_t> mask;
    std::vector<int64_t> lengths;
    std::vector<float> ratios;
    for (unsigned row = 0, rows = random() % 20; row < rows; ++row) {
      const unsigned length = random() % 9;
      json.begin_object();
      json.begin_array("input_ids");
      for (unsigned i = 0; i < length; ++i)
        ids.push_back(static_cast<int32_t>(random())), json.value(ids.back());
      json.end_array();
      json.begin_array("attention_mask");
      for (unsigned i = 0; i < length; ++i)
        mask.push_back(static_cast<int8_t>(random())), json.value(int{mask.back()});
      json.end_array();
      lengths.push_back(-static_cast<int64_t>(random()));
      json.member("length", lengths.back());
      ratios.push_back(static_cast<float>(row) / 4);
      json.member("ratio", double{ratios.back()});
      json.end_object();
      offsets.push_back(static_cast<int32_t>(ids.size()));
    }
    const ArrowColumnData data[] = {{offsets, std::as_bytes(std::span(ids))},
                                    {offsets, std::as_bytes(std::span(mask))},
                                    {{}, std::as_bytes(std::span(lengths))},
                                    {{}, std::as_bytes(std::span(ratios))}};
    ok = ok && writer.batch(lengths.size(), data).ok();
  }
  json.end_array();
  ok = ok && writer.end().ok();
  std::printf("%s\n", json.text().c_str());
  return ok && file.flush() ? 0 : 1;
}
