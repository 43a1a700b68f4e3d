// Any text: the engine that Tokenizer::from_json chooses gives the ids of the reference, alone and in a batch.
//
// The first byte chooses the tokenizer: those of the folder LMEMO_FUZZ_TOKENIZERS (NAME.json), else small ones made here
// that use every pattern the fast engine knows.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "lmemo/tokenizer.h"
#include "small_tokenizers.h"
#include "tokenizer/reference/loader.h"

namespace {

using lmemo::EncodeOptions;
using lmemo::Tokenizer;

struct Pair {
  std::string name;
  std::shared_ptr<const Tokenizer> reference;
  std::shared_ptr<const Tokenizer> chosen;
};

void add_pair(std::vector<Pair>& pairs, const std::string& name, const std::string& json) {
  const auto reference = lmemo::tokenizer::make_reference(json);
  const auto chosen = Tokenizer::from_json(json);
  if (!reference.ok() || !chosen.ok()) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(),
                 (reference.ok() ? chosen : reference).error().describe().c_str());
    std::abort();
  }
  pairs.push_back({name, *reference, *chosen});
}

const std::vector<Pair>& pairs() {
  static const std::vector<Pair> all = [] {
    std::vector<Pair> made;
    if (const char* folder = std::getenv("LMEMO_FUZZ_TOKENIZERS")) {
      for (const auto& file : std::filesystem::directory_iterator(folder)) {
        if (file.path().extension() != ".json") continue;
        std::ostringstream text;
        text << std::ifstream(file.path()).rdbuf();
        add_pair(made, file.path().stem().string(), text.str());
      }
    } else {
      for (const auto& [name, json] : lmemo::fuzz::small_tokenizers()) add_pair(made, name, json);
    }
    if (made.empty()) std::abort();
    return made;
  }();
  return all;
}

void differ(const Pair& pair, const char* how) {
  std::fprintf(stderr, "%s: %s differs from the reference (%s)\n", pair.name.c_str(),
               std::string(pair.chosen->engine()).c_str(), how);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Pair& pair = pairs()[data[0] % pairs().size()];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const bool add_special_tokens : {true, false}) {
    EncodeOptions options;
    options.add_special_tokens = add_special_tokens;
    const auto expected = pair.reference->encode(text, options);
    const auto found = pair.chosen->encode(text, options);
    if (expected.ok() != found.ok()) differ(pair, "whether it fails");
    if (!expected.ok()) continue;
    if (*expected != *found) differ(pair, "ids");
    if (*expected != *pair.chosen->encode(text, options)) differ(pair, "ids, the second time");
    const std::string_view texts[] = {text, "", text};
    const auto batch = pair.chosen->encode_batch(texts, options, 2);
    const auto expected_batch = pair.reference->encode_batch(texts, options, 1);
    if (!batch.ok() || !expected_batch.ok() || batch->ids != expected_batch->ids ||
        batch->offsets != expected_batch->offsets)
      differ(pair, "a batch");
    if (*pair.reference->decode(*expected) != *pair.chosen->decode(*expected))
      differ(pair, "the decoded text");
  }
  return 0;
}
