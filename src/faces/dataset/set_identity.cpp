#include "faces/dataset/set_identity.h"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/hex.h"
#include "base/json_writer.h"
#include "base/little_endian.h"
#include "base/sha256.h"
#include "base/units.h"
#include "faces/dataset/set_directory.h"
#include "lmemo/version.h"

namespace lmemo::dataset {
namespace {

using Json = nlohmann::json;

std::string exact(double value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return std::string(text.data(), end);
}

std::string in_words(const RowRecipe& recipe) {
  switch (recipe.fields) {
    case RowFields::text: return "text " + recipe.first.name;
    case RowFields::messages: return "messages " + recipe.first.name;
    case RowFields::prompt: return "prompt " + recipe.first.name + ", completion " + recipe.second.name;
  }
  return {};
}

void add_file_list(JsonWriter& json, std::string_view name, const std::vector<InputFile>& files, bool eval) {
  json.begin_array(name);
  for (const InputFile& file : files) {
    if (file.is_eval != eval) continue;
    json.begin_object();
    json.member("file", file.path.string());
    json.member("bytes", file.identity.byte_count);
    json.member("sha256", file.identity.sha256.hex());
    json.end_object();
  }
  json.end_array();
}

uint64_t count_in(const Json& json, const char* name) { return json.at(name).get<uint64_t>(); }

}  // namespace

IdentityFields identity_fields(const DatasetOptions& options, const TokenizerFacts& facts,
                               const RowRecipe& recipe, const std::vector<InputFile>& files) {
  IdentityFields fields;
  fields["lmemo format"] = std::to_string(kDatasetFormat);
  fields["tokenizer"] = facts.identity.hex();
  size_t train = 0, eval = 0;
  for (const InputFile& file : files) {
    const std::string name =
        file.is_eval ? "eval file " + std::to_string(++eval) : "train file " + std::to_string(++train);
    fields[name] = "sha256 " + file.identity.sha256.hex();
  }
  fields["fields"] = in_words(recipe);
  static constexpr const char* kTemplates[] = {"none", "chatml", ""};
  fields["template"] = recipe.template_kind == RowTemplate::rendered
                           ? "sha256 " + sha256(bytes_of(recipe.template_text)).hex()
                           : kTemplates[static_cast<int>(recipe.template_kind)];
  fields["loss"] = name_of(recipe.loss);
  fields["eos_token_id"] = recipe.eos_id ? std::to_string(*recipe.eos_id) : "none";
  fields["max_length"] = std::to_string(options.max_length);
  fields["overflow"] = name_of(options.overflow);
  fields["padding"] = name_of(options.padding);
  if (options.padding != RowPadding::none) fields["pad_token_id"] = std::to_string(*facts.pad_id);
  fields["eval_split"] = options.eval_split > 0 ? exact(options.eval_split) : "none";
  if (options.eval_split > 0) fields["seed"] = std::to_string(options.seed);
  return fields;
}

Digest identity_digest(const IdentityFields& fields) {
  std::string all;
  for (const auto& [name, value] : fields)
    for (const std::string* part : {&name, &value}) {
      append_le(all, uint64_t{part->size()});
      all += *part;
    }
  return sha256(bytes_of(all));
}

std::string fingerprint_of(const IdentityFields& fields, const std::string& split) {
  return identity_digest(fields).hex().substr(split == "train" ? 0 : 16, 16);
}

std::string dataset_dict_json(bool has_eval) {
  return has_eval ? R"({"splits": ["train", "eval"]})" : R"({"splits": ["train"]})";
}

std::vector<DatasetDifference> differences_between(const IdentityFields& built, const IdentityFields& asked) {
  std::vector<DatasetDifference> differences;
  for (const auto& [name, value] : built)
    if (const auto found = asked.find(name); found == asked.end()) {
      differences.push_back({name, value, "none"});
    } else if (found->second != value) {
      differences.push_back({name, value, found->second});
    }
  for (const auto& [name, value] : asked)
    if (!built.contains(name)) differences.push_back({name, "none", value});
  return differences;
}

Result<SetFacts> read_set_facts(const std::string& metadata) {
  try {
    const Json json = Json::parse(metadata);
    if (json.at("lmemo_dataset_format").get<int>() != kDatasetFormat)
      return Error{ErrorCode::incompatible, "another format: " + json.at("lmemo_dataset_format").dump()};
    SetFacts facts;
    facts.identity = json.at("identity").get<IdentityFields>();
    facts.counts.train_rows = count_in(json, "train_size");
    facts.counts.eval_rows = count_in(json, "eval_size");
    facts.counts.train_tokens = count_in(json, "train_tokens");
    facts.counts.eval_tokens = count_in(json, "eval_tokens");
    facts.counts.learned_tokens = count_in(json, "learned_tokens");
    facts.counts.padding_tokens = count_in(json, "padding_tokens");
    facts.counts.bad_lines = count_in(json, "bad_lines");
    for (const Json& file : json.at("data_files"))
      facts.data_files.push_back({file.at("file").get<std::string>(), count_in(file, "bytes"),
                                  file.at("checksum").get<std::string>()});
    return facts;
  } catch (const std::exception&) {
    return Error{ErrorCode::incompatible, "metadata.json is damaged or not lmemo's"};
  }
}

std::string metadata_json(const DatasetOptions& options, const TokenizerFacts& facts,
                          const std::vector<InputFile>& files, const IdentityFields& identity,
                          const DatasetCounts& counts,
                          const std::vector<std::pair<std::string, SplitTotals>>& splits) {
  JsonWriter json;
  json.begin_object();
  json.member("lmemo_dataset_format", kDatasetFormat);
  json.member("lmemo_version", kVersion);
  json.member("created", format_time_utc(system_clock().now_ns()));
  json.member("model_name", options.model_name.empty() ? options.tokenizer.string() : options.model_name);
  json.member("tokenizer_identity", facts.identity.hex());
  json.member("vocab_size", facts.vocab_size);
  json.member("pad_token_id", facts.pad_id);
  json.member("eos_token_id", facts.eos_id);
  add_file_list(json, "train_files", files, false);
  add_file_list(json, "eval_files", files, true);
  json.member("max_length", options.max_length);
  json.member("padding", name_of(options.padding));
  json.member("overflow", name_of(options.overflow));
  json.member("template", identity.at("template"));
  json.member("fields", identity.at("fields"));
  json.member("loss", identity.at("loss"));
  json.member("split", options.eval_split);
  json.member("seed", options.seed);
  json.member("train_size", counts.train_rows);
  json.member("eval_size", counts.eval_rows);
  json.member("train_tokens", counts.train_tokens);
  json.member("eval_tokens", counts.eval_tokens);
  json.member("learned_tokens", counts.learned_tokens);
  json.member("padding_tokens", counts.padding_tokens);
  const uint64_t tokens = counts.train_tokens + counts.eval_tokens;
  const uint64_t places = tokens + counts.padding_tokens;
  json.member("padding_share",
              places == 0 ? 0.0 : static_cast<double>(counts.padding_tokens) / static_cast<double>(places));
  json.member("truncated_rows", counts.truncated_rows);
  json.member("truncated_tokens", counts.truncated_tokens);
  json.member("dropped_rows", counts.dropped_rows);
  json.member("split_rows", counts.split_rows);
  json.member("lines", counts.lines);
  json.member("bad_lines", counts.bad_lines);
  json.begin_object("problems");
  for (const auto& [problem, lines] : counts.problems) json.member(problem, lines);
  json.end_object();
  json.begin_array("first_problems");
  for (const std::string& problem : counts.first_problems) json.value(problem);
  json.end_array();
  json.begin_array("data_files");
  for (const auto& [name, totals] : splits) {
    json.begin_object();
    json.member("file", std::string(kDatasetFolder) + "/" + name + "/" + kDataFile);
    json.member("rows", totals.rows);
    json.member("longest_row", totals.longest);
    json.member("bytes", totals.byte_count);
    json.member("checksum", to_hex(totals.checksum));
    json.end_object();
  }
  json.end_array();
  json.begin_object("identity");
  for (const auto& [name, value] : identity) json.member(name, value);
  json.end_object();
  json.end_object();
  return json.text() + "\n";
}

}  // namespace lmemo::dataset

namespace lmemo {

std::string DatasetDifference::describe() const {
  // Digests at full length help nobody.
  const auto brief = [](const std::string& value) {
    return value.size() <= 40 || value.find(' ') == std::string::npos
               ? (value.size() == 64 ? value.substr(0, 12) + "…" : value)
               : value.substr(0, 19) + "…";
  };
  if (built.empty()) return field + ": " + asked;
  if (field.starts_with(dataset::kDamagePrefix))
    return field + " is damaged: found " + built + ", expected " + asked;
  const bool is_content = built.starts_with("sha256 ") && asked.starts_with("sha256 ");
  return field + (is_content ? ": content changed: " : " changed: ") + brief(built) + " → " + brief(asked);
}

}  // namespace lmemo
