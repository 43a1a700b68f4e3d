#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "codec/float_convert.h"
#include "lmemo/activations.h"
#include "support/temp_directory.h"
#include "support/test_scale.h"

namespace lmemo {
namespace {

const std::vector<Field> kModel = {{"model", "gpt2"}, {"weights", "a1b2"}, {"dtype", "float32"}};

std::vector<float> some_floats(size_t count) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> floats(count);
  for (float& number : floats) number = normal(random);
  return floats;
}

std::string record_of(TensorType type, const std::vector<float>& floats, bool compress) {
  TensorRecord record;
  std::byte* out = record.add(type, {2, floats.size() / 2});
  const TensorView source{TensorType::float32, {floats.size()}, false, std::as_bytes(std::span(floats))};
  REQUIRE(copy_elements(source, type, out).ok());
  Result<std::string> bytes = record.finish(compress);
  REQUIRE(bytes.ok());
  return *bytes;
}

TEST_CASE("a key made from a template is the key itself, whatever the part, the layer and the prompt") {
  const auto keys = ActivationKeys::of(kModel);
  REQUIRE(keys.ok());
  for (const std::string& prompt : {std::string(), std::string("hello"), std::string(256, 'x'),
                                    std::string(257, 'y'), std::string("\xf0\x9f\x98\x80")})
    for (const ActivationPart part : {ActivationPart::raw, ActivationPart::pooled, ActivationPart::router,
                                      ActivationPart::logits, ActivationPart::mask})
      for (const int64_t layer : {int64_t{0}, int64_t{7}, int64_t{-1}, int64_t{1} << 40}) {
        const TensorType stored = part == ActivationPart::mask ? TensorType::none : TensorType::float16;
        std::vector<Field> fields = kModel;
        fields.push_back({"part", FieldValue(name_of(part))});
        fields.push_back({"prompt", prompt});
        if (has_layer(part)) fields.push_back({"layer", layer});
        if (part == ActivationPart::pooled) fields.push_back({"pooling", "mean"});
        if (part != ActivationPart::mask) fields.push_back({"stored", "float16"});
        const auto expected = Key::of(kActivationKind, fields);
        REQUIRE(expected.ok());
        const ActivationSlot slot{part, layer, "mean", stored};
        const std::string field = ActivationKeys::prompt(prompt);
        CHECK(keys->digest(field, slot) == expected->digest());
        const auto key = keys->key(field, slot);
        REQUIRE(key.ok());
        CHECK(*key == *expected);
      }
}

TEST_CASE("a model cannot name a field of the entry") {
  for (const char* name : {"layer", "prompt", "part", "pooling", "stored"})
    CHECK_FALSE(ActivationKeys::of({{"model", "m"}, {name, "x"}}).ok());
}

TEST_CASE("tensors come back with type, shape and bits; as another type as torch would round") {
  const std::vector<float> floats = some_floats(3000);
  for (const TensorType type : {TensorType::float16, TensorType::bfloat16, TensorType::float32})
    for (const bool compress : {false, true}) {
      const std::string record = record_of(type, floats, compress);
      const auto tensors = read_tensors(bytes_of(record));
      REQUIRE(tensors.ok());
      REQUIRE(tensors->size() == 1);
      const TensorView& tensor = tensors->front();
      CHECK(tensor.type == type);
      CHECK(tensor.shape == std::vector<uint64_t>{2, 1500});
      CHECK(tensor.is_compressed == (compress && type == TensorType::bfloat16 ? true : tensor.is_compressed));
      std::vector<float> back(3000), strided(4000, -1.0f);
      REQUIRE(copy_elements(tensor, TensorType::float32, reinterpret_cast<std::byte*>(back.data())).ok());
      for (size_t i = 0; i < floats.size(); ++i) CHECK(back[i] == doctest::Approx(floats[i]).epsilon(0.01));
      if (type == TensorType::float32) CHECK(back == floats);
      // Two rows, 2,000 numbers apart.
      REQUIRE(
          copy_elements(tensor, TensorType::float32, reinterpret_cast<std::byte*>(strided.data()), 6000, 8000)
              .ok());
      CHECK(std::memcmp(strided.data(), back.data(), 6000) == 0);
      CHECK(std::memcmp(strided.data() + 2000, back.data() + 1500, 6000) == 0);
      CHECK(strided[1500] == -1.0f);
    }
}

TEST_CASE("a record written in one go is the record made in two, from rows that lie apart or side by side") {
  std::vector<float> floats(7 * 20);
  for (size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(i) * 0.37f - 11;
  const auto* const source = reinterpret_cast<const std::byte*>(floats.data());
  for (const TensorType to : {TensorType::float16, TensorType::bfloat16, TensorType::float32})
    for (const uint64_t columns : {uint64_t{20}, uint64_t{5}, uint64_t{3}}) {
      TensorRecord record;
      std::byte* out = record.add(to, {7, columns});
      for (size_t row = 0; row < 7; ++row) {
        const TensorView view{TensorType::float32,
                              {columns},
                              false,
                              Bytes(source + row * 20 * sizeof(float), columns * sizeof(float))};
        REQUIRE(copy_elements(view, to, out + row * columns * bytes_per_element(to)).ok());
      }
      std::string at_once(record_bytes_of_rows(to, 7, columns), '\xff');
      REQUIRE(write_record_of_rows(TensorType::float32, source, 20 * sizeof(float), to, 7, columns,
                                   reinterpret_cast<std::byte*>(at_once.data()))
                  .ok());
      CHECK(at_once == *record.finish(false));
    }
  std::byte nowhere[256];
  CHECK_FALSE(write_record_of_rows(TensorType::float64, source, 8, TensorType::float16, 1, 1, nowhere).ok());
}

TEST_CASE("a record cut anywhere or with a flipped bit is refused or harmless") {
  std::string record = record_of(TensorType::bfloat16, some_floats(300), true);
  for (size_t cut = 0; cut < record.size(); ++cut)
    CHECK_FALSE(read_tensors(bytes_of(record).first(cut)).ok());
  std::vector<std::byte> out(1 << 16);
  for (size_t bit = 0; bit < record.size() * 8; ++bit) {
    record[bit / 8] ^= static_cast<char>(1 << bit % 8);
    if (const auto tensors = read_tensors(bytes_of(record)); tensors.ok())
      for (const TensorView& tensor : *tensors)
        if (tensor.byte_count() <= out.size())
          static_cast<void>(copy_elements(tensor, tensor.type, out.data()));
    record[bit / 8] ^= static_cast<char>(1 << bit % 8);
  }
}

TEST_CASE("rows that are read without an allocation are those of the record, cut or with any bit flipped") {
  const auto agrees = [](Bytes record) {
    const std::optional<RowsView> rows = read_plain_rows(record);
    if (!rows) return false;
    const Result<std::vector<TensorView>> tensors = read_tensors(record);
    REQUIRE(tensors.ok());
    REQUIRE(tensors->size() == 1);
    const TensorView& tensor = tensors->front();
    CHECK_FALSE(tensor.is_compressed);
    CHECK(tensor.type == rows->type);
    CHECK(tensor.shape == std::vector<uint64_t>{rows->rows, rows->columns});
    CHECK(tensor.stored.data() == rows->stored.data());
    CHECK(tensor.stored.size() == rows->stored.size());
    return true;
  };
  for (const TensorType type : {TensorType::float16, TensorType::bfloat16, TensorType::float32}) {
    std::string record = record_of(type, some_floats(30), false);
    CHECK(agrees(bytes_of(record)));
    for (size_t cut = 0; cut < record.size(); ++cut) CHECK_FALSE(agrees(bytes_of(record).first(cut)));
    for (size_t bit = 0; bit < record.size() * 8; ++bit) {
      record[bit / 8] ^= static_cast<char>(1 << bit % 8);
      agrees(bytes_of(record));
      record[bit / 8] ^= static_cast<char>(1 << bit % 8);
    }
  }
  CHECK_FALSE(agrees(bytes_of(record_of(TensorType::bfloat16, some_floats(300), true))));
  TensorRecord two;
  two.add(TensorType::int32, {3});
  two.add(TensorType::int32, {1, 3});
  CHECK_FALSE(agrees(bytes_of(*two.finish(false))));
}

TEST_CASE("the catalog counts what is there, once, through replacement, publication and removal") {
  const test::TempDirectory directory;
  auto store = *open_store(directory / "store");
  ActivationCatalog catalog(*store);
  const auto keys = ActivationKeys::of(kModel);
  const auto put = [&](int prompt, ActivationPart part, int64_t layer, TensorType stored,
                       const std::string& value) {
    REQUIRE(store
                ->put(*keys->key(ActivationKeys::prompt("prompt " + std::to_string(prompt)),
                                 {part, layer, "mean", stored}),
                      bytes_of(value))
                .ok());
  };
  for (int prompt = 0; prompt < 20; ++prompt) {
    for (int64_t layer = 0; layer < (prompt < 5 ? 3 : 2); ++layer)
      put(prompt, ActivationPart::raw, layer, TensorType::float16, "x");
    put(prompt, ActivationPart::mask, 0, TensorType::none, "m");
    if (prompt % 4 == 0) REQUIRE(catalog.models().ok());
    if (prompt % 7 == 0) REQUIRE(store->flush().ok());
  }
  put(3, ActivationPart::raw, 1, TensorType::float16, std::string(1000, 'y'));
  put(3, ActivationPart::raw, 1, TensorType::float32, "z");
  put(4, ActivationPart::pooled, 6, TensorType::float32, "p");
  auto models = *catalog.models();
  REQUIRE(models.size() == 1);
  CHECK(models[0].name == "gpt2");
  CHECK(models[0].prompts == 20);
  CHECK(models[0].entries == 67);
  CHECK(models[0].raw_layers == std::map<int64_t, uint64_t>{{0, 20}, {1, 20}, {2, 5}});
  CHECK(models[0].poolings == std::set<std::string>{"mean"});
  CHECK(models[0].stored_bytes == store->stats().kinds[kActivationKind].stored_bytes);

  const auto found = *catalog.discover(keys->model_encoding(), ActivationKeys::prompt("prompt 3"));
  REQUIRE(found);
  CHECK(found->raw.size() == 4);
  CHECK(found->has_mask);
  CHECK_FALSE(*catalog.discover(keys->model_encoding(), ActivationKeys::prompt("prompt 99")));
  const auto coverage = *catalog.coverage(keys->model_encoding(), {0, 2});
  CHECK(coverage.size() == 20);

  REQUIRE(store
              ->erase(*keys->key(ActivationKeys::prompt("prompt 3"),
                                 {ActivationPart::raw, 1, "", TensorType::float32}))
              .ok());
  CHECK((*catalog.models())[0].entries == 66);
  REQUIRE(store->clear(kActivationKind).ok());
  CHECK(catalog.models()->empty());
}

TEST_CASE(
    "the catalog agrees with a plain list of all entries, whichever models share prompts and whatever comes "
    "and goes") {
  const test::TempDirectory directory;
  std::mt19937 random(11);
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  std::vector<ActivationKeys> models;
  for (const char* weights : {"a", "b", "c"})
    models.push_back(*ActivationKeys::of({{"model", "gpt2"}, {"weights", weights}, {"max_length", 7}}));
  models.push_back(*ActivationKeys::of({{"model", "other"}}));
  const std::vector<std::string> poolings = {"mean", "max", "last_token"};
  using Place = std::tuple<size_t, std::string, ActivationPart, int64_t, std::string, TensorType>;
  std::map<Place, uint64_t> plain;  // And its size.

  auto store = *open_store(directory / "store");
  auto catalog = std::make_unique<ActivationCatalog>(*store);
  const auto agree = [&] {
    uint64_t prompts_in_all = 0;
    const auto told = *catalog->models();
    for (size_t number = 0; number < models.size(); ++number) {
      uint64_t entries = 0;
      std::set<std::string> prompts;
      std::map<int64_t, std::set<std::string>> layers;
      for (const auto& [place, size] : plain) {
        const auto& [model, prompt, part, layer, pooling, stored] = place;
        if (model != number) continue;
        ++entries;
        prompts.insert(prompt);
        if (part == ActivationPart::raw) layers[layer].insert(prompt);
      }
      prompts_in_all += prompts.size();
      const auto found = std::find_if(told.begin(), told.end(), [&](const auto& model) {
        return model.encoding == models[number].model_encoding();
      });
      REQUIRE((found == told.end()) == (entries == 0));
      if (entries == 0) continue;
      CHECK(ActivationKeys::of(found->model)->model_encoding() == found->encoding);
      CHECK(found->entries == entries);
      CHECK(found->prompts == prompts.size());
      REQUIRE(found->raw_layers.size() == layers.size());
      for (const auto& [layer, its_prompts] : layers)
        CHECK(found->raw_layers.at(layer) == its_prompts.size());
      for (const std::string& prompt : prompts) {
        const auto discovered = *catalog->discover(found->encoding, ActivationKeys::prompt(prompt));
        REQUIRE(discovered);
        size_t count = discovered->raw.size() + discovered->router.size() + discovered->logits.size() +
                       discovered->has_mask;
        for (const auto& [pooling, its_layers] : discovered->pooled) count += its_layers.size();
        CHECK(count == static_cast<size_t>(std::count_if(plain.begin(), plain.end(), [&](const auto& entry) {
                return std::get<0>(entry.first) == number && std::get<1>(entry.first) == prompt;
              })));
      }
    }
    CHECK(prompts_in_all > 0);
  };
  for (int step = 0; step < test::scaled(1200); ++step) {
    const ActivationPart parts[] = {ActivationPart::raw,    ActivationPart::raw,    ActivationPart::pooled,
                                    ActivationPart::router, ActivationPart::logits, ActivationPart::mask};
    const ActivationPart part = parts[below(6)];
    // Long prompts stand in the key by their digest.
    const std::string prompt = below(4) == 0 ? std::string(300, static_cast<char>('a' + below(9)))
                                             : "prompt " + std::to_string(below(25));
    const Place place{static_cast<size_t>(below(4)),
                      prompt,
                      part,
                      has_layer(part) ? below(90) : 0,
                      part == ActivationPart::pooled ? poolings[static_cast<size_t>(below(3))] : "",
                      part == ActivationPart::mask ? TensorType::none
                      : below(3) == 0              ? TensorType::float32
                                                   : TensorType::float16};
    const auto& [model, text, its_part, layer, pooling, stored] = place;
    const Key key = *models[model].key(ActivationKeys::prompt(text), {its_part, layer, pooling, stored});
    if (below(12) == 0 && !plain.empty()) {
      CHECK(*store->erase(key) == (plain.erase(place) == 1));
    } else {
      const std::string value(static_cast<size_t>(below(50)), 'x');
      REQUIRE(store->put(key, bytes_of(value)).ok());
      plain[place] = value.size();
    }
    if (below(30) == 0) REQUIRE(store->flush().ok());
    if (below(100) == 0) agree();
    if (below(400) == 0) {
      catalog.reset();
      store.reset();
      store = *open_store(directory / "store");
      catalog = std::make_unique<ActivationCatalog>(*store);
    }
  }
  agree();
}

}  // namespace
}  // namespace lmemo
