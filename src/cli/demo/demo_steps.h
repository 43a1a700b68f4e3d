// The steps of `lmemo demo`, one for each face. Every figure is measured in this run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/demo/demo_stage.h"

namespace lmemo::cli {

struct DemoCorpus {
  std::filesystem::path directory;
  std::vector<std::filesystem::path> files;
  uint64_t text_bytes = 0;
};

// The regular files of a directory. Refused if there are none, or more text than a demo should take.
Result<DemoCorpus> list_demo_corpus(const std::filesystem::path& directory);

struct SectionsStep {
  uint64_t sections = 0, tokens = 0;
  uint64_t warm_hits = 0, edited_hits = 0, edited_misses = 0;
  double cold_seconds = 0, warm_seconds = 0, edited_seconds = 0;
};
Result<SectionsStep> show_sections(DemoStage& stage, const DemoCorpus& corpus, const std::string& tokenizer);

struct ChunksStep {
  uint64_t chunks = 0, missing_after_kill = 0, filled = 0, rows = 0, tokens = 0, tokens_in = 0, bytes = 0;
  bool was_killed = false;
  double utilization = 0, fill_seconds = 0;
};
// `documents` are JSON lines, one for each paragraph of the corpus.
Result<ChunksStep> show_chunks(DemoStage& stage, const std::string& documents, const std::string& tokenizer);

struct DatasetStep {
  uint64_t train_rows = 0, eval_rows = 0, tokens = 0;
  bool warm_was_built = false;
  double cold_seconds = 0, warm_seconds = 0;
};
Result<DatasetStep> show_dataset(DemoStage& stage, const std::string& documents,
                                 const std::string& tokenizer);

struct CachedModelRuns {
  uint64_t asked = 0, cold_passes = 0, warm_passes = 0;
  double cold_seconds = 0, warm_seconds = 0;
};
struct ModelsStep {
  std::vector<std::string> missing;  // Python packages that a model needs; the rest is empty then.
  std::string model;
  CachedModelRuns forward, activations;
};
// nullopt: this program has no Python at hand.
Result<std::optional<ModelsStep>> show_models(DemoStage& stage, const std::string& python,
                                              const std::string& documents, const std::string& tokenizer);

// One JSON line {"text": …} for each paragraph.
Status write_demo_documents(const DemoCorpus& corpus, const std::filesystem::path& file);

}  // namespace lmemo::cli
