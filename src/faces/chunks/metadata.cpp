// DIR/metadata.json, for people and scripts. Nobody in lmemo reads it.
#include <unistd.h>

#include <array>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/units.h"
#include "faces/chunks/set_status.h"

namespace lmemo::chunks {
namespace {

void write_chunk(JsonWriter& json, const Plan& plan, const SetStatus& status, const PlanEntry& entry) {
  json.begin_object();
  json.member("number", entry.number);
  json.member("file", "chunks/" + SetPaths::name_of_chunk(entry.number));
  json.member("state", name_of(status.states[entry.number]));
  const auto known = status.registry.find(entry.number);
  if (known != status.registry.end()) {
    json.member("rows", known->second.counts.rows);
    json.member("tokens", known->second.counts.tokens);
    json.member("documents", known->second.counts.documents);
    json.member("left_out", known->second.counts.left_out());
    json.member("bytes", known->second.bytes);
    json.member("sha256", known->second.sha256.hex());
  }
  json.begin_array("sources");
  for (const PlanRange& range : entry.ranges) {
    json.begin_object();
    json.member("path", plan.sources.at(range.source).path.string());
    json.member("begin", range.begin);
    json.member("end", range.end);
    json.member("documents", range.documents);
    json.member("sha256", range.sha256.hex());
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

}  // namespace

Status write_metadata(const SetPaths& paths, const Plan& plan, const SetStatus& status) {
  FileSystem& files = real_file_system();
  const ChunkCounts counts = status.counts();
  const double room = static_cast<double>(counts.rows) * plan.parameters.sequence_length;
  const int64_t now = system_clock().now_ns();
  LMEMO_ASSIGN(const FileStatus begun, files.status(paths.directory / "plan" / "000000.plan"));

  JsonWriter json;
  json.begin_object();
  json.member("version", 1);
  json.member("total_chunks", plan.entries.size());
  json.member("total_sequences", counts.rows);
  json.member("max_length", plan.parameters.sequence_length);
  json.member("compression_enabled", plan.parameters.compression != "none");
  json.member("compression", plan.parameters.compression);
  json.member("strategy", plan.parameters.strategy);
  json.begin_object("tokenizer");
  json.member("name", plan.parameters.tokenizer_name);
  json.member("identity", plan.parameters.tokenizer.hex());
  json.end_object();
  json.member("created", format_time_utc(begun.modified_ns));
  json.member("updated", format_time_utc(now));
  json.begin_object("utilization_stats");
  json.member("avg_utilization", room > 0 ? static_cast<double>(counts.tokens) / room : 0.0);
  json.member("total_tokens", counts.tokens);
  json.member("efficiency_ratio", counts.tokens_in > 0 ? static_cast<double>(counts.tokens) /
                                                             static_cast<double>(counts.tokens_in)
                                                       : 1.0);
  json.end_object();
  json.member("complete", status.is_complete());
  json.member("bytes", status.bytes());
  json.begin_array("chunks");
  for (const PlanEntry& entry : plan.entries) write_chunk(json, plan, status, entry);
  json.end_array();
  json.end_object();

  LMEMO_TRY(files.make_directory(paths.writing()));
  const Path temporary = paths.writing() / ("metadata." + std::to_string(::getpid()));
  LMEMO_TRY(files.remove(temporary));
  {
    LMEMO_ASSIGN(const auto file, files.create(temporary));
    const std::array<Bytes, 2> parts = {bytes_of(json.text()), bytes_of("\n")};
    LMEMO_TRY(file->append(parts));
  }
  return files.rename(temporary, paths.metadata());
}

}  // namespace lmemo::chunks
