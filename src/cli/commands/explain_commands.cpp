// lmemo explain: is it there, and if not, which field is to blame.
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "cli/command_context.h"
#include "cli/commands/all_commands.h"
#include "cli/field_words.h"
#include "cli/text_table.h"

namespace lmemo::cli {
namespace {

void explain_json(CommandContext& context, const Key& key, const Explanation& explanation) {
  JsonWriter json = begin_json(context);
  json.member("store", context.settings.store().string());
  json.member("kind", key.kind());
  json.member("digest", key.digest().hex());
  json.member("is_hit", explanation.is_hit);
  json.member("candidates", explanation.candidates);
  if (explanation.nearest) {
    json.begin_object("nearest");
    json.member("digest", explanation.nearest->digest().hex());
    json.member("written", format_time_utc(explanation.nearest_written_ns));
    add_fields(json, "fields", explanation.nearest->fields());
    json.end_object();
  } else {
    json.member_null("nearest");
  }
  json.begin_array("differing");
  for (const FieldDifference& difference : explanation.differing) {
    json.begin_object();
    json.member("name", difference.name);
    for (const auto& [side, value] :
         {std::pair{"asked", &difference.asked}, {"stored", &difference.stored}}) {
      if (*value) {
        json.begin_object(side);
        add_value(json, **value);
        json.end_object();
      } else {
        json.member_null(side);
      }
    }
    json.end_object();
  }
  json.end_array();
  json.member("description", explanation.describe());
  json.end_object();
  context.console.out(json);
}

std::string described(const std::optional<FieldValue>& value) {
  return value ? value->describe() : "(no such field)";
}

void explain_words(CommandContext& context, const Key& key, const Explanation& explanation) {
  Console& console = context.console;
  console.out(
      console.styled(explanation.is_hit ? Style::green : Style::yellow, printable(explanation.describe())) +
      "\n");
  console.out("key       " + key.digest().hex() + "\n");
  if (explanation.is_hit) return;
  console.out("compared  with " + format_count(explanation.candidates) + " entries of kind " +
              printable(key.kind()) + "\n");
  if (!explanation.nearest) return;
  console.out("nearest   " + explanation.nearest->digest().hex() + ", stored " +
              format_age(explanation.nearest_written_ns, system_clock().now_ns()) + "\n\n");
  TextTable table({Align::left, Align::left, Align::left});
  table.add({"field", "asked", "nearest"});
  for (const FieldDifference& difference : explanation.differing)
    table.add({difference.name, described(difference.asked), described(difference.stored)});
  console.out(table.text(2));
}

int run_explain(CommandContext& context) {
  const std::vector<std::string>& words = context.arguments.positionals();
  std::vector<Field> fields;
  for (size_t word = 1; word < words.size(); ++word) {
    auto field = parse_field(words[word]);
    if (!field.ok()) return misuse(context, field.error().message);
    fields.push_back(std::move(*field));
  }
  const auto key = Key::of(words.front(), std::move(fields));
  if (!key.ok()) return fail(context, key.error());

  auto store = open_existing_store(context, Access::look);
  if (!store.ok()) return fail(context, store.error());
  const auto explanation = (*store)->explain(*key);
  if (!explanation.ok()) return fail(context, explanation.error());
  if (context.console.is_json) {
    explain_json(context, *key, *explanation);
  } else if (context.console.is_quiet) {
    context.console.out(key->digest().hex() + "\n");
  } else {
    explain_words(context, *key, *explanation);
  }
  return kExitFine;
}

}  // namespace

std::vector<CommandSpec> explain_commands() {
  CommandSpec explain;
  explain.name = "explain";
  explain.summary = "tell whether a request would hit, and if not, why";
  explain.details =
      "A miss is compared with the nearest entry of its kind, and the fields in which they differ are "
      "named.\n"
      "A field is NAME=TEXT, or has a type: NAME:int=3, NAME:float=0.5, NAME:bool=true, NAME:bytes=HEX, "
      "NAME:none=. "
      "3, 3.0 and \"3\" are different values.\n"
      "With --quiet: the digest of the key that was asked for.";
  explain.positionals = {
      {.name = "KIND", .help = "the kind of the entry, such as tokens"},
      {.name = "FIELD", .help = "the fields of the key", .is_required = false, .is_repeated = true}};
  explain.examples = {{"lmemo explain tokens tokenizer=gpt2 truncation:int=2048", "Why did this miss?"}};
  explain.run = run_explain;
  return {explain};
}

}  // namespace lmemo::cli
