// lmemo activations: what is stored of hidden states, by model, prompt and layer.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/units.h"
#include "cli/command_context.h"
#include "cli/commands/all_commands.h"
#include "cli/commands/removal.h"
#include "cli/text_table.h"
#include "lmemo/activations.h"

namespace lmemo::cli {
namespace {

constexpr size_t kMapColumns = 64;
constexpr size_t kMapRows = 48;

std::string model_of(const CommandContext& context) { return context.arguments.positional(0).value_or(""); }

// By the name or by the front of the hash.
bool is_meant(const ActivationModel& model, const std::string& asked) {
  return asked.empty() || model.name == asked || (asked.size() >= 4 && model.hash.starts_with(asked));
}

std::string identity_of(const ActivationModel& model) {
  std::string text;
  for (const auto& [name, value] : model.fields)
    if (name != "model")
      text +=
          (text.empty() ? "" : ", ") + name + " " + (value.size() > 16 ? value.substr(0, 12) + "…" : value);
  return text.empty() ? "-" : printable(text);
}

std::string parts_of(const ActivationModel& model) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (!model.raw_layers.empty()) add("raw");
  for (const std::string& pooling : model.poolings) add(printable(pooling));
  if (model.has_router) add("router");
  if (model.has_logits) add("logits");
  if (model.has_perplexity) add("perplexity");
  if (model.has_token_perplexity) add("token perplexity");
  return text;
}

// One line a layer, prompts from left to right in no particular order; the fuller a cell, the more of the prompts behind it have the layer.
Status out_map(Console& console, ActivationCatalog& catalog, const ActivationModel& model) {
  std::vector<int64_t> layers;
  for (const auto& [layer, prompts] : model.raw_layers) layers.push_back(layer);
  if (layers.empty()) return {};
  LMEMO_ASSIGN(const std::vector<std::vector<bool>> rows, catalog.coverage(model.encoding, layers));
  const size_t columns = std::min(kMapColumns, rows.size());
  constexpr std::array<const char*, 5> kShades = {"·", "░", "▒", "▓", "█"};
  console.out("\n" + console.styled(Style::bold, printable(model.name)) + ": raw states of " +
              format_count(rows.size()) + (rows.size() == 1 ? " prompt" : " prompts") + " by layer\n");
  for (size_t l = 0; l < std::min(layers.size(), kMapRows); ++l) {
    std::string line;
    for (size_t column = 0; column < columns; ++column) {
      const size_t first = column * rows.size() / columns, end = (column + 1) * rows.size() / columns;
      const auto have = std::count_if(rows.begin() + static_cast<ptrdiff_t>(first),
                                      rows.begin() + static_cast<ptrdiff_t>(end),
                                      [&](const std::vector<bool>& row) { return row[l]; });
      const size_t count = end - first, of = static_cast<size_t>(have);
      line += kShades[of == count ? 4 : of == 0 ? 0 : 1 + of * 3 / count];
    }
    const std::string number = std::to_string(layers[l]);
    console.out("  " + std::string(number.size() < 5 ? 5 - number.size() : 0, ' ') + number + "  " + line +
                "  " + format_count(model.raw_layers.at(layers[l])) + "\n");
  }
  if (layers.size() > kMapRows)
    console.out("  … and " + format_count(layers.size() - kMapRows) + " more layers\n");
  return {};
}

int show_json(CommandContext& context, const std::vector<ActivationModel>& models) {
  JsonWriter json = begin_json(context);
  json.member("store", context.settings.store().string());
  uint64_t stored_bytes = 0;
  for (const ActivationModel& model : models) stored_bytes += model.stored_bytes;
  json.member("stored_bytes", stored_bytes);
  json.begin_array("models");
  for (const ActivationModel& model : models) {
    json.begin_object();
    json.member("model", model.name);
    json.member("hash", model.hash);
    json.begin_object("identity");
    for (const auto& [name, value] : model.fields) json.member(name, value);
    json.end_object();
    json.member("prompts", model.prompts);
    json.member("entries", model.entries);
    json.member("stored_bytes", model.stored_bytes);
    json.begin_array("layers");
    for (const auto& [layer, prompts] : model.raw_layers) {
      json.begin_object();
      json.member("layer", layer);
      json.member("prompts", prompts);
      json.end_object();
    }
    json.end_array();
    json.begin_array("poolings");
    for (const std::string& pooling : model.poolings) json.value(pooling);
    json.end_array();
    json.member("has_router", model.has_router);
    json.member("has_logits", model.has_logits);
    json.member("has_perplexity", model.has_perplexity);
    json.member("has_token_perplexity", model.has_token_perplexity);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  context.console.out(json);
  return kExitFine;
}

int run_show(CommandContext& context) {
  Console& console = context.console;
  auto store = open_existing_store(context, Access::look);
  if (!store.ok()) return fail(context, store.error());
  ActivationCatalog catalog(**store);
  Result<std::vector<ActivationModel>> all = catalog.models();
  if (!all.ok()) return fail(context, all.error());
  std::vector<ActivationModel> models;
  for (ActivationModel& model : *all)
    if (is_meant(model, model_of(context))) models.push_back(std::move(model));
  std::sort(models.begin(), models.end(), [](const auto& a, const auto& b) {
    return a.name != b.name ? a.name < b.name : a.hash < b.hash;
  });
  if (models.empty() && !model_of(context).empty())
    return fail(context,
                {ErrorCode::invalid_argument, "no activations of a model called " + model_of(context) +
                                                  "; `lmemo activations show` lists them all"});
  if (console.is_json) return show_json(context, models);
  if (console.is_quiet) {
    for (const ActivationModel& model : models) console.out(model.hash + "\n");
    return kExitFine;
  }
  uint64_t stored_bytes = 0;
  for (const ActivationModel& model : models) stored_bytes += model.stored_bytes;
  console.out(format_count(models.size()) + (models.size() == 1 ? " model, " : " models, ") +
              format_byte_count(stored_bytes) + " in " + printable(context.settings.store().string()) + "\n");
  if (models.empty()) return kExitFine;
  TextTable table(
      {Align::left, Align::left, Align::right, Align::right, Align::right, Align::left, Align::left});
  table.add({"model", "hash", "prompts", "layers", "stored", "parts", "identity"});
  for (const ActivationModel& model : models)
    table.add({printable(model.name), model.hash, format_count(model.prompts),
               format_count(model.raw_layers.size()), format_byte_count(model.stored_bytes), parts_of(model),
               identity_of(model)});
  console.out("\n" + table.text(2));
  for (const ActivationModel& model : models)
    if (const Status shown = out_map(console, catalog, model); !shown.ok())
      return fail(context, shown.error());
  return kExitFine;
}

std::string text_of_layers(const std::vector<DiscoveredPrompt::Layer>& layers) {
  std::string text;
  for (const auto& [layer, stored] : layers)
    text += (text.empty() ? "" : ", ") + std::to_string(layer) + " (" + std::string(name_of(stored)) + ")";
  return text;
}

void add_layers(JsonWriter& json, const std::vector<DiscoveredPrompt::Layer>& layers) {
  for (const auto& [layer, stored] : layers) {
    json.begin_object();
    json.member("layer", layer);
    json.member("dtype", name_of(stored));
    json.end_object();
  }
  json.end_array();
}

int run_discover(CommandContext& context) {
  Console& console = context.console;
  auto store = open_existing_store(context, Access::look);
  if (!store.ok()) return fail(context, store.error());
  ActivationCatalog catalog(**store);
  const Result<std::vector<ActivationModel>> models = catalog.models();
  if (!models.ok()) return fail(context, models.error());
  const std::string prompt_field = ActivationKeys::prompt(*context.arguments.positional(1));
  JsonWriter json = begin_json(context);
  json.begin_array("found");
  size_t found_count = 0;
  for (const ActivationModel& model : *models) {
    if (!is_meant(model, model_of(context))) continue;
    const auto found = catalog.discover(model.encoding, prompt_field);
    if (!found.ok()) return fail(context, found.error());
    if (!*found) continue;
    ++found_count;
    const DiscoveredPrompt& prompt = **found;
    PromptSizes sizes;
    if (const auto keys = ActivationKeys::of(model.model); keys.ok())
      sizes = sizes_of(**store, *keys, prompt_field, prompt);
    json.begin_object();
    json.member("model", model.name);
    json.member("hash", model.hash);
    if (sizes.tokens) json.member("tokens", *sizes.tokens);
    json.begin_array("raw");
    add_layers(json, prompt.raw);
    json.begin_object("pooled");
    for (const auto& [pooling, layers] : prompt.pooled) {
      json.begin_array(pooling);
      add_layers(json, layers);
    }
    json.end_object();
    json.begin_array("router");
    add_layers(json, prompt.router);
    json.member("has_logits", !prompt.logits.empty());
    json.member("has_top_k_logits", !prompt.top_k_logits.empty());
    if (sizes.top_k) json.member("logits_top_k", *sizes.top_k);
    json.member("has_perplexity", !prompt.perplexity.empty());
    json.member("has_token_perplexity", !prompt.token_perplexity.empty());
    json.end_object();
    if (console.is_json) continue;
    if (console.is_quiet) {
      console.out(model.hash + "\n");
      continue;
    }
    console.out(console.styled(Style::bold, printable(model.name)) + " " + model.hash + "\n");
    if (sizes.tokens) console.out("  tokens        " + format_count(*sizes.tokens) + "\n");
    if (!prompt.raw.empty()) console.out("  raw layers    " + text_of_layers(prompt.raw) + "\n");
    for (const auto& [pooling, layers] : prompt.pooled)
      console.out("  pooled        " + printable(pooling) + ": " + text_of_layers(layers) + "\n");
    if (!prompt.router.empty()) console.out("  router        " + text_of_layers(prompt.router) + "\n");
    if (!prompt.logits.empty()) console.out("  logits        full\n");
    if (!prompt.top_k_logits.empty())
      console.out("  logits        the " + (sizes.top_k ? format_count(*sizes.top_k) + " " : "") +
                  "largest\n");
    if (!prompt.perplexity.empty())
      console.out(std::string("  perplexity    ") +
                  (prompt.token_perplexity.empty() ? "of the prompt" : "of the prompt and of each token") +
                  "\n");
  }
  json.end_array();
  json.end_object();
  if (console.is_json)
    console.out(json);
  else if (found_count == 0 && !console.is_quiet)
    console.out("nothing is stored of this prompt\n");
  return found_count > 0 ? kExitFine : kExitFailed;
}

int run_evict(CommandContext& context) {
  const uint64_t target_bytes = *context.arguments.byte_count("to");
  return remove_with_consent(
      context,
      [&](Store& store) -> Result<Preview> {
        // Least recently used first, as the store does it.
        std::vector<std::pair<int64_t, EntryInfo>> entries;
        uint64_t left = 0;
        LMEMO_TRY(store.scan({kActivationKind, {}}, [&](const EntryInfo& entry) {
          entries.emplace_back(std::max(entry.written_ns, entry.accessed_ns), entry);
          left += entry.stored_bytes;
          return !context.was_interrupted();
        }));
        std::sort(entries.begin(), entries.end(),
                  [](const auto& a, const auto& b) { return a.first < b.first; });
        Preview preview;
        for (const auto& [used_ns, entry] : entries) {
          if (left <= target_bytes) break;
          left -= entry.stored_bytes;
          preview.add(kActivationKind, entry.stored_bytes);
          if (lists_digests(context)) preview.digests.push_back(entry.digest);
        }
        return preview;
      },
      [&](Store& store) { return store.evict_kind(kActivationKind, target_bytes, context.console.watch()); });
}

int run_clear(CommandContext& context) {
  ScanFilter filter{kActivationKind, {}};
  if (const auto model = context.arguments.text("model")) filter.fields.push_back({"model", *model});
  return remove_with_consent(
      context,
      [&](Store& store) {
        return preview_matching(context, store, filter, [](const EntryInfo&) { return true; });
      },
      [&](Store& store) -> Result<RemovalReport> {
        if (filter.fields.empty()) return store.clear(kActivationKind);
        return store.erase_matching(filter, context.console.watch());
      });
}

}  // namespace

std::vector<CommandSpec> activation_commands() {
  CommandSpec show;
  show.name = "show";
  show.summary = "show what is stored by model, with a map of prompts and layers";
  show.details = "With --quiet: the hashes of the models.";
  show.positionals = {{.name = "MODEL",
                       .help = "a model's name or the front of its hash; all if left out",
                       .is_required = false}};
  show.examples = {
      {"lmemo activations show", "Every model, what it takes, and which layers of which prompts are there."},
      {"lmemo activations show gpt2 --json", "One model, for programs."}};
  show.run = run_show;

  CommandSpec discover;
  discover.name = "discover";
  discover.summary = "tell what is stored of one prompt";
  discover.details = "With --quiet: the hashes of the models that have it.";
  discover.positionals = {{.name = "MODEL", .help = "a model's name or the front of its hash"},
                          {.name = "PROMPT", .help = "the whole prompt"}};
  discover.examples = {{"lmemo activations discover gpt2 \"The capital of France is\"",
                        "Layers and their dtypes, pooled vectors, logits."}};
  discover.run = run_discover;

  CommandSpec activations;
  activations.name = "activations";
  activations.summary = "show, evict or clear hidden states by model, prompt and layer";
  activations.subcommands = {
      show, discover,
      removing_command("evict", "drop the least recently used activations until they fit",
                       {{.name = "to",
                         .type = ValueType::byte_count,
                         .value_name = "SIZE",
                         .help = "what all activations may take afterwards, such as 5GiB",
                         .is_required = true}},
                       {{"lmemo activations evict --to 5GiB", "Shows what would go, asks, removes."}},
                       run_evict),
      removing_command("clear", "remove all activations, or those of a model",
                       {{.name = "model",
                         .type = ValueType::text,
                         .value_name = "NAME",
                         .help = "only of models with this name"}},
                       {{"lmemo activations clear --model gpt2", "Forget one model."},
                        {"lmemo activations clear --yes", "Forget them all without asking."}},
                       run_clear)};
  activations.store_variable = "LMEMO_ACTIVATIONS_STORE";  // As in Python.
  activations.details = "The store is LMEMO_ACTIVATIONS_STORE, as in Python, before it is LMEMO_STORE.";
  activations.examples = {{"lmemo activations show", "What is there, and what it takes."}};
  return {activations};
}

}  // namespace lmemo::cli
