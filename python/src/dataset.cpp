// What lmemo/dataset.py is made of: a request as the JSON of a training config, and the face behind it.

#include "lmemo/dataset.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <vector>

#include "bindings.h"
#include "chat_renderer.h"
#include "errors.h"
#include "long_work.h"
#include "python_tokenizer.h"
#include "store_object.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {
namespace {

TrainingConfig config_of(const std::string& json, nb::handle file, nb::handle renderer) {
  const std::filesystem::path path = path_of(file);
  Result<TrainingConfig> config = [&] {
    const nb::gil_scoped_release without_gil;
    std::error_code ignored;
    return parse_training_config(json, path, std::filesystem::current_path(ignored), fetch_from_hub);
  }();
  TrainingConfig made = value_or_raise(std::move(config));
  made.options.load_tokenizer = load_with_fallback;
  made.options.foreign_engine = huggingface_version;
  if (!renderer.is_none()) made.options.make_renderer = chat_renderer_of(nb::borrow(renderer));
  return made;
}

nb::list differences_to_python(const std::vector<DatasetDifference>& differences) {
  nb::list list;
  for (const DatasetDifference& difference : differences)
    list.append(nb::make_tuple(text_to_python(difference.field), text_to_python(difference.built),
                               text_to_python(difference.asked), text_to_python(difference.describe())));
  return list;
}

nb::list check(const std::string& json, nb::handle file, bool rehash) {
  TrainingConfig config = config_of(json, file, nb::none());
  config.options.rehash = rehash;
  Result<DatasetCheck> done = [&] {
    const nb::gil_scoped_release without_gil;
    return check_dataset(config.options);
  }();
  return differences_to_python(value_or_raise(std::move(done)).differences);
}

// A callable, called from any thread.
std::function<void(const std::string&)> note_of(nb::handle note) {
  if (note.is_none()) return {};
  return [note](const std::string& line) {
    const nb::gil_scoped_acquire with_gil;
    try {
      note(text_to_python(line));
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("lmemo.dataset: note");
    }
  };
}

nb::dict outcome_to_python(const DatasetOutcome& outcome) {
  const DatasetCounts& counts = outcome.counts;
  nb::dict problems;
  for (const auto& [problem, lines] : counts.problems) problems[text_to_python(problem)] = lines;
  nb::dict dict;
  dict["directory"] = path_to_python(outcome.directory);
  dict["was_built"] = outcome.was_built;
  dict["differences"] = differences_to_python(outcome.differences);
  dict["lines"] = counts.lines;
  dict["rows_tokenised"] = counts.rows_tokenised;
  dict["rows_from_store"] = counts.rows_from_store;
  dict["train_rows"] = counts.train_rows;
  dict["eval_rows"] = counts.eval_rows;
  dict["train_tokens"] = counts.train_tokens;
  dict["eval_tokens"] = counts.eval_tokens;
  dict["learned_tokens"] = counts.learned_tokens;
  dict["padding_tokens"] = counts.padding_tokens;
  dict["truncated_rows"] = counts.truncated_rows;
  dict["dropped_rows"] = counts.dropped_rows;
  dict["split_rows"] = counts.split_rows;
  dict["bad_lines"] = counts.bad_lines;
  dict["problems"] = problems;
  dict["first_problems"] = texts_to_python(counts.first_problems);
  dict["wall_seconds"] = outcome.wall_seconds;
  return dict;
}

nb::dict ensure(const std::string& json, nb::handle file, nb::handle open_store, nb::handle renderer,
                nb::handle note, nb::handle progress, bool rehash, bool force) {
  TrainingConfig config = config_of(json, file, renderer);
  config.options.rehash = rehash;
  config.options.force = force;
  // Asked for when a build starts, from the thread that works.
  std::shared_ptr<Store> store;
  std::optional<nb::python_error> raised;
  const OpenStoreForRows get_store = [&]() -> StoreForRows {
    StoreForRows rows;
    const nb::gil_scoped_acquire with_gil;
    try {
      const nb::object object = open_store();
      if (!object.is_none()) store = nb::cast<const StoreObject&>(object).hold();
      if (nb::isinstance<DiskStoreObject>(object))
        rows.directory = nb::cast<const DiskStoreObject&>(object).directory();
    } catch (nb::python_error& error) {
      raised.emplace(std::move(error));
    }
    rows.store = store.get();
    return rows;
  };
  const auto note_line = note_of(note);
  auto outcome = run_with_result(progress, [&](const Watch& watch) {
    return ensure_dataset(config.options, get_store, watch, note_line);
  });
  if (raised) throw std::move(*raised);
  nb::dict dict = outcome_to_python(value_or_raise(std::move(outcome)));
  dict["warnings"] = texts_to_python(config.warnings);
  return dict;
}

}  // namespace

void init_datasets(nb::module_& m) {
  m.def("dataset_check", &check, "config"_a, "file"_a, "rehash"_a,
        nb::sig("def dataset_check(config: str, file: str | os.PathLike[str], rehash: bool) -> "
                "list[tuple[str, str, str, str]]"),
        "Behind lmemo.dataset.check.");
  m.def("dataset_ensure", &ensure, "config"_a, "file"_a, "open_store"_a, "renderer"_a.none(), "note"_a.none(),
        "progress"_a.none(), "rehash"_a, "force"_a,
        nb::sig("def dataset_ensure(config: str, file: str | os.PathLike[str], open_store: Callable[[], "
                "StoreBase | None], "
                "renderer: Any, note: Callable[[str], object] | None, progress: Callable[[Progress], object] "
                "| None, "
                "rehash: bool, force: bool) -> dict[str, Any]"),
        "Behind lmemo.dataset.build.");
  m.def(
      "dataset_resolve",
      [](nb::handle directory) {
        return path_to_python(value_or_raise(resolve_dataset(path_of(directory))));
      },
      "directory"_a, nb::sig("def dataset_resolve(directory: str | os.PathLike[str]) -> pathlib.Path"),
      "The directory of the files that belong together, which the next build leaves alone.");
}

}  // namespace lmemo::python
