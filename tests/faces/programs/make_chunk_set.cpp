// Makes a chunk set of made-up documents, or appends chunks to one, in no time:
//
//   make_chunk_set DIR CHUNKS DOCUMENTS_PER_CHUNK MAX_TOKENS SEQUENCE_LENGTH VOCABULARY COMPRESSION [SEED]
//
// Token i of document d of chunk c is drawn from a seed made of these numbers, often words first, as in texts.

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "base/sha256.h"
#include "faces/chunks/plan.h"
#include "faces/chunks/set_directory.h"

using namespace lmemo;
using namespace lmemo::chunks;

namespace {

Status make(char** arguments) {
  const SetPaths paths{arguments[1]};
  const uint64_t chunks = std::strtoull(arguments[2], nullptr, 10);
  const uint64_t documents = std::strtoull(arguments[3], nullptr, 10);
  const uint32_t max_tokens = static_cast<uint32_t>(std::atoi(arguments[4]));
  LMEMO_TRY(paths.make());
  LMEMO_ASSIGN(std::optional<Plan> found, load_plan(paths.directory));
  Plan plan = found.value_or(Plan());
  if (!found) {
    plan.parameters.sequence_length = static_cast<uint32_t>(std::atoi(arguments[5]));
    plan.parameters.vocab_size = static_cast<uint32_t>(std::atoi(arguments[6]));
    plan.parameters.compression = arguments[7];
    plan.parameters.tokenizer = sha256(bytes_of("a tokenizer"));
    plan.parameters.tokenizer_name = "made up";
  }
  const unsigned seed = arguments[8] == nullptr ? 0 : static_cast<unsigned>(std::atoi(arguments[8]));

  PlanPart part;
  const uint64_t first = plan.entries.size();
  for (uint64_t number = first; number < first + chunks; ++number) {
    PlanEntry entry;
    entry.number = number;
    const std::string text = std::to_string(seed) + "/" + std::to_string(number);
    entry.ranges.push_back({.source = 0,
                            .begin = number,
                            .end = number + 1,
                            .documents = documents,
                            .sha256 = sha256(bytes_of(text))});
    part.entries.push_back(std::move(entry));
  }
  if (!found) part.sources.emplace_back().path = "/made-up.jsonl";
  LMEMO_TRY(append_to_plan(paths.directory, plan, part));

  Registry registry;
  std::vector<uint32_t> tokens;
  std::vector<uint64_t> offsets;
  const uint32_t vocabulary = plan.parameters.vocab_size;
  for (uint64_t number = first; number < first + chunks; ++number) {
    std::mt19937_64 random(number * 1000 + seed);
    tokens.clear();
    offsets.assign(1, 0);
    for (uint64_t document = 0; document < documents; ++document) {
      for (uint64_t length = 1 + random() % max_tokens; length > 0; --length) {
        const uint64_t bits = random();  // Zipf's law, about: the logarithm is even.
        const double even = static_cast<double>(bits >> 11) / 9007199254740992.0;
        tokens.push_back(
            std::min(vocabulary - 1, static_cast<uint32_t>(__builtin_exp(even * __builtin_log(vocabulary)))));
      }
      offsets.push_back(tokens.size());
    }
    ChunkContent content;
    content.number = number;
    content.ranges = plan.entries[number].contents();
    content.tokens = tokens;
    content.offsets = offsets;
    LMEMO_ASSIGN(const WrittenChunk written,
                 write_chunk(real_file_system(), paths.chunk(number), plan.parameters, content));
    LMEMO_ASSIGN(const FileStatus status, real_file_system().status(paths.chunk(number)));
    registry[number] = {.number = number,
                        .bytes = written.bytes,
                        .modified_ns = status.modified_ns,
                        .counts = written.counts,
                        .blocks = written.blocks,
                        .rows_per_block = rows_per_block(plan.parameters),
                        .sha256 = written.sha256,
                        .content_sha256 = written.content_sha256,
                        .key = written.key};
  }
  return update_registry(paths, registry);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 8) return 2;
  const Status status = make(arguments);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.error().describe().c_str());
  return status.ok() ? 0 : 1;
}
