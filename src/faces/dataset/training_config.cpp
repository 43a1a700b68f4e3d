// A training config as people have it: one JSON object with the paths and parameters of a run, of which the data set
// needs some. Other names are none of its business.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/home_directory.h"
#include "base/near_name.h"
#include "lmemo/dataset.h"
#include "sources/text_file.h"

namespace lmemo {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class ConfigReader {
 public:
  ConfigReader(const Json& json, const fs::path& file, const fs::path& working_directory)
      : json_(json), file_(file), working_directory_(working_directory) {}

  // Null counts as not given.
  bool has(const char* name) const {
    asked_.emplace_back(name);
    return json_.contains(name) && !json_[name].is_null();
  }
  // After all has been read.
  std::vector<std::string> warnings() const {
    std::vector<std::string> texts;
    for (const auto& [name, value] : json_.items())
      if (const auto meant = mistyped_name(name, asked_);
          meant && std::find(asked_.begin(), asked_.end(), name) == asked_.end())
        texts.push_back(file_.string() + ": " + name + " is left to the training; did you mean " + *meant +
                        "?");
    return texts;
  }

  Error wrong(const std::string& name, const std::string& expected) const {
    return {ErrorCode::invalid_argument,
            file_.string() + ": " + name + " is " + json_[name].dump() + ", expected " + expected};
  }

  Status text(const char* name, std::string& value) const {
    if (!has(name)) return {};
    if (!json_[name].is_string()) return wrong(name, "a text");
    value = json_[name].get<std::string>();
    return {};
  }
  Status boolean(const char* name, bool& value) const {
    if (!has(name)) return {};
    if (!json_[name].is_boolean()) return wrong(name, "true or false");
    value = json_[name].get<bool>();
    return {};
  }
  template <typename Integer>
  Status whole(const char* name, Integer& value) const {
    if (!has(name)) return {};
    if (!json_[name].is_number_integer()) return wrong(name, "a whole number");
    if (std::is_unsigned_v<Integer> && json_[name].is_number_integer() && !json_[name].is_number_unsigned())
      return wrong(name, "a number that is not negative");
    value = json_[name].get<Integer>();
    return {};
  }
  Status share(const char* name, double& value) const {
    if (!has(name)) return {};
    if (!json_[name].is_number()) return wrong(name, "a share such as 0.1");
    value = json_[name].get<double>();
    return {};
  }
  template <typename Choice>
  Status choice(const char* name, std::optional<Choice> (*named)(std::string_view), const char* expected,
                Choice& value) const {
    if (!has(name)) return {};
    const std::optional<Choice> found =
        json_[name].is_string() ? named(json_[name].get<std::string>()) : std::nullopt;
    if (!found) return wrong(name, expected);
    value = *found;
    return {};
  }
  // One path or a list of them.
  Status paths(const char* name, std::vector<fs::path>& value) const {
    if (!has(name)) return {};
    const Json list = json_[name].is_array() ? json_[name] : Json::array({json_[name]});
    for (const Json& item : list) {
      if (!item.is_string() || item.get<std::string>().empty())
        return wrong(name, "a path or a list of paths");
      value.push_back(place_of(item.get<std::string>()));
    }
    return {};
  }

  fs::path place_of(const fs::path& path) const {
    std::error_code error;
    const fs::path here = working_directory_ / path;
    if (path.is_absolute() || fs::exists(here, error)) return here;
    const fs::path beside = file_.parent_path() / path;
    return fs::exists(beside, error) ? beside : here;
  }

 private:
  mutable std::vector<std::string> asked_;  // What means something here.
  const Json& json_;
  const fs::path& file_;
  const fs::path& working_directory_;
};

Status read(const ConfigReader& config, const fs::path& file, const fs::path& working_directory,
            const FetchModel& fetch, TrainingConfig& result) {
  DatasetOptions& options = result.options;
  LMEMO_TRY(config.boolean("use_cached_tokens", result.use_cached_tokens));
  LMEMO_TRY(config.text("model_name", options.model_name));
  if (options.model_name.empty()) LMEMO_TRY(config.text("model_name_or_path", options.model_name));
  std::string tokenizer = options.model_name, directory;
  LMEMO_TRY(config.text("tokenizer", tokenizer));
  if (tokenizer.empty())
    return Error{ErrorCode::invalid_argument, file.string() + ": no model_name (nor tokenizer)"};
  std::error_code error;
  const fs::path beside = file.parent_path() / tokenizer;
  if (!fs::exists(working_directory / tokenizer, error) && fs::exists(beside, error)) {
    options.tokenizer = beside;
  } else {
    LMEMO_ASSIGN(options.tokenizer, find_model(tokenizer, working_directory, fetch));
  }
  LMEMO_TRY(config.paths("train_file", options.train_files));
  LMEMO_TRY(config.paths("train_files", options.train_files));
  LMEMO_TRY(config.paths("eval_file", options.eval_files));
  LMEMO_TRY(config.paths("eval_files", options.eval_files));
  LMEMO_TRY(config.text("cached_tokens_dir", directory));
  if (directory.empty()) return Error{ErrorCode::invalid_argument, file.string() + ": no cached_tokens_dir"};
  options.output_directory = working_directory / directory;
  LMEMO_TRY(config.share("eval_split", options.eval_split));
  LMEMO_TRY(config.whole("seed", options.seed));
  LMEMO_TRY(config.whole("max_length", options.max_length));
  LMEMO_TRY(config.choice("padding", row_padding_named, "none, longest or max_length", options.padding));
  LMEMO_TRY(
      config.choice("overflow", row_overflow_named, "truncate, drop, split or error", options.overflow));
  LMEMO_TRY(config.choice("loss", row_loss_named, "all, completion or assistant", options.loss));
  LMEMO_TRY(config.text("template", options.chat_template));
  const std::string& name = options.chat_template;
  if (!name.empty() && name != "none" && name != "chatml" && name != "tokenizer")
    options.chat_template = config.place_of(name).string();
  LMEMO_TRY(config.text("text_field", options.text_field));
  LMEMO_TRY(config.text("messages_field", options.messages_field));
  LMEMO_TRY(config.text("prompt_field", options.prompt_field));
  LMEMO_TRY(config.text("completion_field", options.completion_field));
  LMEMO_TRY(config.boolean("append_eos", options.append_eos));
  LMEMO_TRY(config.text("eos_token", options.eos_token));
  LMEMO_TRY(config.text("pad_token", options.pad_token));
  LMEMO_TRY(config.boolean("strict", options.is_strict));
  LMEMO_TRY(config.whole("workers", options.workers));
  result.warnings = config.warnings();
  return {};
}

fs::path hub_cache() {
  const auto variable = [](const char* name) {
    return std::getenv(name) == nullptr ? std::string() : std::string(std::getenv(name));
  };
  if (const std::string cache = variable("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const std::string home = variable("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty())
    return fs::path(cache) / "huggingface" / "hub";
  return home_directory().value_or("") / ".cache" / "huggingface" / "hub";
}

// OWNER/NAME or NAME, and no path of a file.
bool may_be_on_the_hub(const std::string& name) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
  };
  return !name.empty() && std::isalnum(static_cast<unsigned char>(name[0])) != 0 && name.back() != '/' &&
         std::count(name.begin(), name.end(), '/') <= 1 && std::all_of(name.begin(), name.end(), is_word) &&
         !name.ends_with(".json");
}

}  // namespace

Result<fs::path> find_model(const std::string& name, const fs::path& working_directory,
                            const FetchModel& fetch) {
  std::error_code error;
  const fs::path here = working_directory / name;
  if (fs::exists(here, error)) return here;
  std::string folder = "models--";
  for (const char c : name) folder += c == '/' ? "--" : std::string(1, c);
  const fs::path model = hub_cache() / folder;
  if (const Result<std::string> revision = read_text_file(model / "refs" / "main", 256); revision.ok()) {
    const fs::path snapshot = model / "snapshots" / revision->substr(0, revision->find_first_of(" \r\n"));
    if (fs::exists(snapshot / "tokenizer.json", error)) return snapshot;
  }
  std::string message = "no tokenizer " + name + ": neither a path (" + here.string() +
                        ") nor a model with a tokenizer.json in " + hub_cache().string();
  if (!may_be_on_the_hub(name)) return Error{ErrorCode::invalid_argument, message};
  if (!fetch)
    return Error{ErrorCode::invalid_argument,
                 message + "; `hf download " + name + "` fetches one from the hub"};
  Result<fs::path> fetched = fetch(name);
  if (!fetched.ok())
    return Error{fetched.error().code, message + "; and from the hub: " + fetched.error().message};
  if (!fs::exists(*fetched / "tokenizer.json", error))
    return Error{ErrorCode::invalid_argument, message + "; and the model on the hub has no tokenizer.json"};
  return fetched;
}

Result<TrainingConfig> parse_training_config(std::string_view text, const fs::path& file,
                                             const fs::path& working_directory, const FetchModel& fetch) {
  TrainingConfig result;
  // The library below throws where a value is not what it is asked for; ConfigReader asks first.
  try {
    const Json json = Json::parse(text);
    if (!json.is_object())
      return Error{ErrorCode::invalid_argument, file.string() + ": expected one JSON object"};
    LMEMO_TRY(read(ConfigReader(json, file, working_directory), file, working_directory, fetch, result));
  } catch (const std::exception& error) {
    return Error{ErrorCode::invalid_argument, file.string() + ": not JSON: " + error.what()};
  }
  return result;
}

Result<TrainingConfig> read_training_config(const fs::path& file, const fs::path& working_directory,
                                            const FetchModel& fetch) {
  LMEMO_ASSIGN(const std::string text, read_text_file(file, uint64_t{16} << 20));
  return parse_training_config(text, file, working_directory, fetch);
}

}  // namespace lmemo
