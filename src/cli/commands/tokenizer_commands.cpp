// lmemo tokenize, lmemo tokenizer: text to ids, what a tokenizer is, and whether HuggingFace agrees.
#include "lmemo/tokenizer.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/command_context.h"
#include "cli/commands/all_commands.h"
#include "cli/text_table.h"
#include "cli/tokenizer_argument.h"

namespace lmemo::cli {
namespace {

using std::filesystem::path;

constexpr size_t kTextsAtOnce = 256;
constexpr size_t kBytesAtOnce = size_t{8} << 20;

Result<std::string> text_of_file(const CommandContext& context, const path& name) {
  if (name == "-") {
    if (!context.environment.read_input) return Error{ErrorCode::io_error, "there is no standard input"};
    return context.environment.read_input();
  }
  std::error_code error;
  const path file = std::filesystem::canonical(context.environment.working_directory / name, error);
  if (error) return errno_error(error.value(), "read", name);
  LMEMO_ASSIGN(const auto mapped, real_file_system().map(file));
  if (!mapped) return Error{ErrorCode::io_error, "cannot read " + name.string() + ": it is gone"};
  return std::string(text_of(mapped->bytes()));
}

// ------------------------------------------------------------------------------------------------------- tokenize

struct TokenizedFile {
  std::string name;
  size_t bytes = 0;
  TokenIds ids;
};

void tokenize_json(CommandContext& context, const Tokenizer& tokenizer,
                   const std::vector<TokenizedFile>& files) {
  const bool only_counts = context.arguments.has("count");
  JsonWriter json = begin_json(context);
  json.member("fingerprint", tokenizer.identity().hex());
  json.begin_array("files");
  for (const TokenizedFile& file : files) {
    json.begin_object();
    json.member("file", file.name);
    json.member("bytes", file.bytes);
    json.member("count", file.ids.size());
    if (!only_counts) {
      json.begin_array("ids");
      for (const uint32_t id : file.ids) json.value(id);
      json.end_array();
    }
    json.end_object();
  }
  json.end_array();
  json.end_object();
  context.console.out(json);
}

void tokenize_counts(Console& console, const std::vector<TokenizedFile>& files) {
  TextTable table({Align::right, Align::left});
  size_t total = 0;
  for (const TokenizedFile& file : files) {
    table.add({std::to_string(file.ids.size()), file.name});
    total += file.ids.size();
  }
  if (files.size() > 1 && !console.is_quiet) table.add({std::to_string(total), "total"});
  console.out(table.text(0));
}

void tokenize_ids(Console& console, const std::vector<TokenizedFile>& files) {
  for (const TokenizedFile& file : files) {
    std::string line;
    for (const uint32_t id : file.ids) line += (line.empty() ? "" : " ") + std::to_string(id);
    console.out(line + "\n");
  }
}

void tokenize_words(Console& console, const Tokenizer& tokenizer, const std::vector<TokenizedFile>& files) {
  for (const TokenizedFile& file : files) {
    if (files.size() > 1) console.out(console.styled(Style::bold, printable(file.name)) + "\n");
    for (const uint32_t id : file.ids) {
      const std::string number = std::to_string(id);
      console.out(std::string(number.size() < 7 ? 7 - number.size() : 0, ' ') + number + "  " +
                  printable(tokenizer.id_to_token(id).value_or("")) + "\n");
    }
  }
}

int run_tokenize(CommandContext& context) {
  const auto tokenizer = tokenizer_argument(context);
  if (!tokenizer.ok()) return fail(context, tokenizer.error());
  EncodeOptions options;
  options.add_special_tokens = !context.arguments.has("no-special-tokens");
  std::vector<TokenizedFile> files;
  for (const std::string& name : context.arguments.positionals()) {
    if (context.was_interrupted()) return fail(context, {ErrorCode::interrupted, "interrupted"});
    const auto text = text_of_file(context, name);
    if (!text.ok()) return fail(context, text.error());
    const std::string_view texts[] = {*text};
    auto batch = (*tokenizer)->encode_batch(texts, options);
    if (!batch.ok()) {
      std::string message = batch.error().message;
      if (message.starts_with("text 0: ")) message.erase(0, 8);
      return fail(context, {ErrorCode::incompatible, name + ": " + message});
    }
    files.push_back({name, text->size(), std::move(batch->ids)});
  }
  if (context.console.is_json) {
    tokenize_json(context, **tokenizer, files);
  } else if (context.arguments.has("count")) {
    tokenize_counts(context.console, files);
  } else if (context.arguments.has("ids") || context.console.is_quiet) {
    tokenize_ids(context.console, files);
  } else {
    tokenize_words(context.console, **tokenizer, files);
  }
  return kExitFine;
}

// ----------------------------------------------------------------------------------------------------------- show

int run_show(CommandContext& context) {
  const std::string name = context.arguments.positional(0).value();
  const auto tokenizer = load_tokenizer(context, name);
  if (!tokenizer.ok()) return fail(context, tokenizer.error());
  Console& console = context.console;
  if (console.is_json) {
    JsonWriter json = begin_json(context);
    json.member("tokenizer", name);
    json.member("engine", (*tokenizer)->engine());
    json.member("fingerprint", (*tokenizer)->identity().hex());
    json.member("vocab_size", (*tokenizer)->vocab_size());
    json.begin_array("parts");
    for (const TokenizerPart& part : (*tokenizer)->parts()) {
      json.begin_object();
      json.member("name", part.name);
      json.member("description", part.description);
      json.end_object();
    }
    json.end_array();
    json.end_object();
    console.out(json);
    return kExitFine;
  }
  if (console.is_quiet) {
    console.out((*tokenizer)->identity().hex() + "\n");
    return kExitFine;
  }
  console.out(console.styled(Style::bold, printable(name)) + "\n");
  TextTable table({Align::left, Align::left});
  table.add({"fingerprint", (*tokenizer)->identity().hex()});
  table.add({"engine", std::string((*tokenizer)->engine())});
  table.add({"tokens", format_count((*tokenizer)->vocab_size())});
  for (const TokenizerPart& part : (*tokenizer)->parts()) table.add({part.name, part.description});
  console.out(table.text(2));
  return kExitFine;
}

// ---------------------------------------------------------------------------------------------------------- check

struct Difference {
  std::string document;
  size_t position = 0;  // The first id that differs.
  std::vector<uint32_t> expected, found;
  std::string text_before;
};

struct Comparison {
  size_t documents = 0;
  size_t skipped = 0;  // Not UTF-8.
  uint64_t bytes = 0;
  uint64_t ids = 0;
  size_t mismatches = 0;
  std::optional<Difference> first;
};

bool is_utf8(std::string_view text) {
  for (size_t length; !text.empty(); text.remove_prefix(length))
    if (length = utf8_length(text.substr(0, 4)); length == 0) return false;
  return true;
}

std::vector<uint32_t> some_from(const std::vector<uint32_t>& ids, size_t first) {
  constexpr size_t kShown = 6;
  const size_t begin = std::min(first, ids.size()), end = std::min(begin + kShown, ids.size());
  return {ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.begin() + static_cast<std::ptrdiff_t>(end)};
}

class Check {
 public:
  Check(const Tokenizer& tokenizer, const TokenOracle& oracle) : tokenizer_(tokenizer), oracle_(oracle) {}

  Status add(const std::string& name, std::string text) {
    if (!is_utf8(text)) {
      ++comparison.skipped;
      return {};
    }
    bytes_ += text.size();
    names_.push_back(name);
    texts_.push_back(std::move(text));
    return texts_.size() < kTextsAtOnce && bytes_ < kBytesAtOnce ? Status() : finish();
  }

  // Compares what has been added since the last time.
  Status finish() {
    if (texts_.empty()) return {};
    LMEMO_ASSIGN(const auto expected, oracle_.encode(texts_));
    if (expected.size() != texts_.size())
      return Error{ErrorCode::incompatible, oracle_.name + " answered " + std::to_string(expected.size()) +
                                                " texts of " + std::to_string(texts_.size())};
    const std::vector<std::string_view> views(texts_.begin(), texts_.end());
    LMEMO_ASSIGN(const TokenBatch found, tokenizer_.encode_batch(views));
    for (size_t i = 0; i < texts_.size(); ++i) {
      const std::vector<uint32_t> ids(found[i].begin(), found[i].end());
      if (ids != expected[i]) note_difference(names_[i], expected[i], ids);
      comparison.ids += ids.size();
      comparison.bytes += texts_[i].size();
    }
    comparison.documents += texts_.size();
    names_.clear();
    texts_.clear();
    bytes_ = 0;
    return {};
  }

  Comparison comparison;

 private:
  void note_difference(const std::string& name, const std::vector<uint32_t>& expected,
                       const std::vector<uint32_t>& found) {
    ++comparison.mismatches;
    if (comparison.first) return;
    Difference& first = comparison.first.emplace();
    first.document = name;
    const auto [place, other] = std::mismatch(expected.begin(), expected.end(), found.begin(), found.end());
    first.position = static_cast<size_t>(place - expected.begin());
    first.expected = some_from(expected, first.position);
    first.found = some_from(found, first.position);
    const size_t from = first.position < 8 ? 0 : first.position - 8;
    const auto before = tokenizer_.decode(std::span(expected).subspan(from, first.position - from), {false});
    if (before.ok()) first.text_before = *before;
  }

  const Tokenizer& tokenizer_;
  const TokenOracle& oracle_;
  std::vector<std::string> names_;
  std::vector<std::string> texts_;
  size_t bytes_ = 0;
};

// Every file of a folder, in order; a file is its own corpus.
Result<std::vector<path>> files_in(const path& corpus) {
  std::error_code error;
  if (!std::filesystem::is_directory(corpus, error)) return std::vector<path>{corpus};
  std::vector<path> files;
  using Walk = std::filesystem::recursive_directory_iterator;
  for (Walk walk(corpus, std::filesystem::directory_options::skip_permission_denied, error), end;
       !error && walk != end; walk.increment(error))
    if (walk->is_regular_file(error)) files.push_back(walk->path());
  if (error) return errno_error(error.value(), "read", corpus);
  std::sort(files.begin(), files.end());
  return files;
}

Status compare_all(CommandContext& context, const TokenOracle& oracle, Check& check) {
  const auto corpus = context.arguments.positional(1);
  if (!corpus)
    for (const std::string& trap : oracle.traps) LMEMO_TRY(check.add("trap", trap));
  const path& shipped = context.environment.shipped_examples;
  path folder;
  if (corpus)
    folder = context.environment.working_directory / *corpus;
  else if (!shipped.empty())
    folder = shipped / "corpus";
  std::vector<path> files;
  if (!folder.empty()) {
    LMEMO_ASSIGN(files, files_in(folder));
  }
  for (const path& file : files) {
    if (context.was_interrupted()) return Error{ErrorCode::interrupted, "interrupted"};
    LMEMO_ASSIGN(std::string text, text_of_file(context, file));
    LMEMO_TRY(check.add(file.string(), std::move(text)));
  }
  return check.finish();
}

void check_json(CommandContext& context, const std::string& name, const TokenOracle& oracle,
                const Comparison& comparison) {
  JsonWriter json = begin_json(context);
  json.member("tokenizer", name);
  json.member("compared_with", oracle.name);
  json.member("documents", comparison.documents);
  json.member("skipped", comparison.skipped);
  json.member("bytes", comparison.bytes);
  json.member("ids", comparison.ids);
  json.member("mismatches", comparison.mismatches);
  if (comparison.first) {
    json.begin_object("first_difference");
    json.member("document", comparison.first->document);
    json.member("position", comparison.first->position);
    json.member("text_before", comparison.first->text_before);
    for (const auto& [label, ids] :
         {std::pair("expected", &comparison.first->expected), std::pair("found", &comparison.first->found)}) {
      json.begin_array(label);
      for (const uint32_t id : *ids) json.value(id);
      json.end_array();
    }
    json.end_object();
  } else {
    json.member_null("first_difference");
  }
  json.end_object();
  context.console.out(json);
}

std::string listed(const std::vector<uint32_t>& ids) {
  std::string text;
  for (const uint32_t id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text.empty() ? "(end)" : text;
}

void check_words(Console& console, const TokenOracle& oracle, const Comparison& comparison) {
  console.out("compared with " + oracle.name + ": " + format_count(comparison.documents) + " documents, " +
              format_byte_count(comparison.bytes) + ", " + format_count(comparison.ids) + " ids\n");
  if (comparison.skipped > 0)
    console.note(format_count(comparison.skipped) + " documents are not UTF-8 and were skipped");
  if (!comparison.first) {
    console.out(console.styled(Style::green, "no document differs") + "\n");
    return;
  }
  const Difference& first = *comparison.first;
  console.out(console.styled(Style::red, format_count(comparison.mismatches) + " documents differ") + "\n");
  TextTable table({Align::left, Align::left});
  table.add({"first", first.document});
  table.add({"from id", std::to_string(first.position)});
  table.add({"behind", "\"" + first.text_before + "\""});
  table.add({"expected", listed(first.expected)});
  table.add({"found", listed(first.found)});
  console.out(table.text(2));
}

int run_check(CommandContext& context) {
  const std::string name = context.arguments.positional(0).value();
  if (!context.environment.token_oracle) {
    const int exit_code =
        fail(context, {ErrorCode::incompatible,
                       "this program has no Python, and HuggingFace's tokenizers to compare with"});
    context.console.hint("pip install lmemo tokenizers; its lmemo command does this");
    return exit_code;
  }
  const auto tokenizer = load_tokenizer(context, name);
  if (!tokenizer.ok()) return fail(context, tokenizer.error());
  path file = tokenizer_path(context, name);
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) file /= "tokenizer.json";
  const auto oracle = context.environment.token_oracle(file);
  if (!oracle.ok()) return fail(context, oracle.error());

  Check check(**tokenizer, *oracle);
  if (const Status status = compare_all(context, *oracle, check); !status.ok())
    return fail(context, status.error());
  if (context.console.is_json) {
    check_json(context, name, *oracle, check.comparison);
  } else if (context.console.is_quiet) {
    if (check.comparison.first) context.console.out(check.comparison.first->document + "\n");
  } else {
    check_words(context.console, *oracle, check.comparison);
  }
  return check.comparison.mismatches == 0 ? kExitFine : kExitDamage;
}

const PositionalSpec kTokenizer = {
    .name = "TOKENIZER", .help = "a tokenizer.json, or a model's directory", .type = ValueType::file};

CommandSpec tokenize_command() {
  CommandSpec tokenize;
  tokenize.name = "tokenize";
  tokenize.summary = "turn texts into token ids";
  tokenize.details = "Without --ids or --count: each id with its token. With --quiet: as --ids.";
  tokenize.positionals = {{.name = "FILE",
                           .help = "UTF-8 text; - is standard input",
                           .type = ValueType::file,
                           .is_repeated = true}};
  tokenize.options = {tokenizer_option(),
                      {.name = "ids", .help = "ids only, a line for each file"},
                      {.name = "count", .help = "how many ids each file has"},
                      {.name = "no-special-tokens", .help = "without what the tokenizer puts around a text"},
                      pattern_option()};
  tokenize.examples = {{"lmemo tokenize README.md -t gpt2/tokenizer.json --count", "How long is it?"},
                       {"echo Hello | lmemo tokenize - -t models/llama", "Which tokens are these?"}};
  tokenize.run = run_tokenize;
  return tokenize;
}

}  // namespace

std::vector<CommandSpec> tokenizer_commands() {
  CommandSpec show;
  show.name = "show";
  show.summary = "tell what a tokenizer is: engine, identity, parts";
  show.details = "With --quiet: the fingerprint.";
  show.positionals = {kTokenizer};
  show.options = {pattern_option()};
  show.examples = {{"lmemo tokenizer show models/llama", "What is in this directory?"}};
  show.run = run_show;

  CommandSpec check;
  check.name = "check";
  check.summary = "compare ids with HuggingFace's, text by text";
  check.details =
      "Every file of CORPUS is a document; without one: texts that tokenizers get wrong, and those that come "
      "with "
      "lmemo. Needs Python and HuggingFace's tokenizers: pip install lmemo tokenizers.";
  check.positionals = {kTokenizer,
                       {.name = "CORPUS",
                        .help = "a text or a folder of them",
                        .type = ValueType::file,
                        .is_required = false}};
  check.examples = {{"lmemo tokenizer check models/llama ~/src", "Does every file get the same ids?"}};
  check.exit_meanings = {{kExitDamage, "a document differs"}};
  check.run = run_check;

  CommandSpec tokenizer;
  tokenizer.name = "tokenizer";
  tokenizer.summary = "show what a tokenizer is, or compare it with HuggingFace's";
  tokenizer.subcommands = {show, check};
  tokenizer.examples = {{"lmemo tokenizer show gpt2/tokenizer.json", "Engine, fingerprint, parts."}};
  return {tokenize_command(), tokenizer};
}

}  // namespace lmemo::cli
