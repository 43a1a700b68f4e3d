// lmemo._core.sync_sections and SectionRun: what lmemo/sections.py puts SectionCache in front of.

#include "lmemo/sections.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "bindings.h"
#include "errors.h"
#include "faces/sections/section_document.h"
#include "faces/sections/section_inventory.h"
#include "long_work.h"
#include "python_tokenizer.h"
#include "record_class.h"
#include "store_object.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {
namespace {

Digest digest_of(const std::string& hex, const char* name) {
  const auto digest = Digest::from_hex(hex);
  if (!digest)
    raise_error({ErrorCode::invalid_argument, std::string(name) + ": expected 64 hexadecimal digits"});
  return *digest;
}

std::vector<std::string> texts_of(nb::handle texts) {
  std::vector<std::string> all;
  for (const nb::handle text : texts) all.push_back(utf8_of(text));
  return all;
}

struct RunObject {
  SectionRun run;
};

size_t checked_index(const RunObject& self, size_t index) {
  if (index >= self.run.size())
    throw nb::index_error(
        ("row " + std::to_string(index) + " of " + std::to_string(self.run.size())).c_str());
  return index;
}

template <typename Number>
nb::object view_of(const TokenRow& row) {
  auto* kept = new TokenRow(row);
  nb::capsule owner(kept, [](void* held) noexcept { delete static_cast<TokenRow*>(held); });
  const auto* data = reinterpret_cast<const Number*>(kept->packed().data());
  return nb::ndarray<nb::numpy, const Number, nb::ndim<1>>(data, {kept->size()}, owner).cast();
}

template <typename Number>
nb::object array_of(std::unique_ptr<Number[]> numbers, size_t count) {
  Number* const data = numbers.release();
  nb::capsule owner(data, [](void* held) noexcept { delete[] static_cast<Number*>(held); });
  return nb::ndarray<nb::numpy, Number, nb::ndim<1>>(data, {count}, owner).cast();
}

// Two and four bytes are handed out where they lie; three have no type of numpy's and become four.
nb::object row(const RunObject& self, size_t index) {
  const TokenRow found = value_or_raise(self.run.row(checked_index(self, index)));
  if (found.bytes_per_id() == 2 && self.run.bytes_per_id() == 2) return view_of<uint16_t>(found);
  if (found.bytes_per_id() == 4) return view_of<uint32_t>(found);
  std::unique_ptr<uint32_t[]> ids(new uint32_t[found.size()]);
  found.unpack(ids.get());
  return array_of(std::move(ids), found.size());
}

nb::tuple gather(const RunObject& self, size_t first, size_t end) {
  end = std::min(end, self.run.size());
  first = std::min(first, end);
  std::unique_ptr<int32_t[]> ids;
  std::unique_ptr<int64_t[]> offsets(new int64_t[end - first + 1]);
  size_t total = 0;
  Status status;
  {
    const nb::gil_scoped_release released;
    for (size_t i = first; i < end; ++i) total += self.run.token_count(i);
    ids.reset(new int32_t[total]);
    size_t at = 0;
    for (size_t i = first; i < end; ++i) {
      offsets[i - first] = static_cast<int64_t>(at);
      const Result<TokenRow> found = self.run.row(i);
      if (!found.ok() || found->size() > total - at) {
        status = found.ok()
                     ? Error{ErrorCode::corruption,
                             self.run.path(i).string() + ": its row has another length than the sync found"}
                     : found.error();
        break;
      }
      found->unpack(reinterpret_cast<uint32_t*>(ids.get()) + at);
      at += found->size();
    }
    offsets[end - first] = static_cast<int64_t>(at);
  }
  raise_if_failed(status);
  return nb::make_tuple(array_of(std::move(ids), total), array_of(std::move(offsets), end - first + 1));
}

RunObject sync_sections(nb::handle store_handle, nb::handle tokenizer, const std::string& tokenizer_name,
                        const std::optional<std::string>& chat_template, nb::handle eos_token,
                        nb::handle sources, uint64_t sequence_len, bool keep_end, bool default_excludes,
                        bool gitignore, bool rehash, nb::handle own_directory, uint64_t max_bytes,
                        unsigned threads, nb::handle notice, nb::handle progress) {
  SectionRecipe recipe;
  recipe.tokenizer = tokenizer_of_engine(tokenizer);
  recipe.tokenizer_identity = recipe.tokenizer->identity();
  recipe.tokenizer_name = tokenizer_name;
  if (chat_template) recipe.chat_template = digest_of(*chat_template, "chat_template");
  if (!eos_token.is_none()) recipe.eos_token = utf8_of(eos_token);
  std::vector<SectionSource> all;
  for (const nb::handle source : sources)
    all.push_back({path_of(source[0]), texts_of(source[1]), texts_of(source[2]),
                   nb::cast<uint64_t>(source[3]), nb::cast<uint64_t>(source[4]), path_of(source[5])});
  SyncOptions options;
  options.sequence_len = sequence_len;
  options.keep_end = keep_end;
  options.use_default_excludes = default_excludes;
  options.use_ignore_files = gitignore;
  options.rehash = rehash;
  if (!own_directory.is_none()) options.own_directory = path_of(own_directory);
  options.max_bytes = max_bytes;
  options.threads = threads;
  options.on_notice = [notice](const std::string& text) {
    const nb::gil_scoped_acquire acquired;
    try {
      notice(text_to_python(text));
    } catch (const nb::python_error& error) {  // A logger that fails does not end the sync.
      (void)error;
    }
  };
  const StoreObject& store = nb::cast<StoreObject&>(store_handle);
  const auto* disk =
      nb::isinstance<DiskStoreObject>(store_handle) ? &nb::cast<DiskStoreObject&>(store_handle) : nullptr;
  const bool remembers = disk != nullptr && !disk->is_read_only();
  const SectionCache cache(store.hold(), remembers ? disk->directory() : std::filesystem::path(),
                           std::move(recipe));
  auto run = run_with_result(progress, [&](const Watch& watch) { return cache.sync(all, options, watch); });
  store.deliver_notices();
  return {value_or_raise(std::move(run))};
}

RemovalReport prune_sections(nb::handle store_handle, nb::handle roots, nb::handle older_than,
                             nb::handle progress) {
  const auto& store = nb::cast<DiskStoreObject&>(store_handle);
  const double seconds = seconds_of(older_than, "older_than");
  std::vector<std::filesystem::path> resolved;
  for (const nb::handle root : roots) resolved.push_back(std::filesystem::weakly_canonical(path_of(root)));
  const std::shared_ptr<Store> held = store.hold();
  const std::filesystem::path directory = store.directory();
  return value_or_raise(run_with_result(progress, [&](const Watch& watch) {
    const int64_t before_ns = system_clock().now_ns() - static_cast<int64_t>(seconds * 1e9);
    return remove_sections(*held, sections_of(directory, resolved, before_ns), watch);
  }));
}

nb::dict read_dlm(nb::handle path, nb::handle home) {
  const SectionDocument document = value_or_raise(read_document(path_of(path), path_of(home)));
  nb::list sources;
  for (const SectionSource& source : document.sources)
    sources.append(nb::make_tuple(path_to_python(source.path), texts_to_python(source.include),
                                  texts_to_python(source.exclude), source.max_files,
                                  source.max_bytes_per_file, path_to_python(source.confine_to)));
  nb::dict result;
  result["id"] = text_to_python(document.id);
  result["sources"] = sources;
  result["sequence_len"] = document.sequence_len;
  result["cache_enabled"] = document.cache_enabled;
  result["cache_max_bytes"] = document.cache_max_bytes;
  result["prune_older_than_days"] = document.prune_older_than_days.value_or(kDefaultPruneDays);
  result["warnings"] = texts_to_python(document.warnings);
  return result;
}

nb::dict reasons_of(const SyncStats& stats) {
  nb::dict reasons;
  for (size_t i = 0; i < kMissReasons; ++i)
    reasons[nb::str(name_of(static_cast<MissReason>(i)).data())] = stats.misses_by_reason[i];
  return reasons;
}

}  // namespace

void init_sections(nb::module_& m) {
  RecordClass<SyncStats>(m, "SyncStats", "What a sync of source trees did.")
      .field("run_id", &SyncStats::run_id, "26 characters that sort by time.")
      .field("total_sections", &SyncStats::total_sections, "Rows: files that were not skipped.")
      .field("cache_hits", &SyncStats::cache_hits, "Sections found in the store.")
      .field("cache_misses", &SyncStats::cache_misses, "Sections tokenised.")
      .computed(
          "hit_rate", [](const SyncStats& self) { return self.hit_rate(); }, "def hit_rate(self) -> float",
          "Hits of all sections.")
      .computed("miss_reasons", &reasons_of, "def miss_reasons(self) -> dict[str, int]",
                "Misses by reason: new, edited, …")
      .field("total_tokens", &SyncStats::total_tokens, "Of the rows, after the cut.")
      .field("cut_sections", &SyncStats::cut_sections, "Sections longer than sequence_len.")
      .field("total_tokenize_seconds", &SyncStats::total_tokenize_seconds, "Added up over threads.")
      .field("saved_seconds", &SyncStats::saved_seconds, "What the hits would have taken.")
      .field("wall_seconds", &SyncStats::wall_seconds, "Of the whole sync.")
      .field("cache_bytes_after", &SyncStats::cache_bytes_after, "What all sections take in the store.")
      .field("files_read", &SyncStats::files_read, "Files that had to be opened.")
      .field("source_bytes", &SyncStats::source_bytes, "Of all files listed.")
      .field("skipped_binary", &SyncStats::skipped_binary, "A NUL in the first KiB.")
      .field("skipped_not_utf8", &SyncStats::skipped_not_utf8, "Not UTF-8.")
      .field("skipped_too_large", &SyncStats::skipped_too_large, "Beyond max_bytes_per_file.")
      .field("skipped_links", &SyncStats::skipped_links, "Symbolic links, which are never followed.")
      .field("failed", &SyncStats::failed, "Could not be read or tokenised.")
      .field("failed_puts", &SyncStats::failed_puts, "Tokenised, but the store had no room.");

  nb::class_<RunObject>(m, "SectionRun", "The compiled part of lmemo.Run.")
      .def("__len__", [](const RunObject& self) { return self.run.size(); })
      .def_prop_ro("stats", [](const RunObject& self) { return self.run.stats(); })
      .def_prop_ro(
          "notices", [](const RunObject& self) { return texts_to_python(self.run.notices()); },
          nb::sig("def notices(self) -> list[str]"))
      .def("row", &row, "index"_a,
           nb::sig("def row(self, index: int) -> NDArray[numpy.uint16] | NDArray[numpy.uint32]"))
      .def("gather", &gather, "first"_a, "end"_a,
           nb::sig(
               "def gather(self, first: int, end: int) -> tuple[NDArray[numpy.int32], NDArray[numpy.int64]]"),
           "The ids of rows first to end - 1 in one array, and where each begins.")
      .def(
          "path",
          [](const RunObject& self, size_t index) {
            return path_to_python(self.run.path(checked_index(self, index)));
          },
          "index"_a, nb::sig("def path(self, index: int) -> pathlib.Path"))
      .def(
          "token_count",
          [](const RunObject& self, size_t index) {
            return self.run.token_count(checked_index(self, index));
          },
          "index"_a)
      .def(
          "is_hit",
          [](const RunObject& self, size_t index) {
            return self.run.outcome(checked_index(self, index)) == Outcome::hit;
          },
          "index"_a)
      .def(
          "key",
          [](const RunObject& self, size_t index) {
            return value_or_raise(self.run.key(checked_index(self, index)));
          },
          "index"_a)
      .def(
          "explain",
          [](const RunObject& self, nb::handle path) {
            return value_or_raise(self.run.explain(path_of(path)));
          },
          "path"_a, nb::sig("def explain(self, path: str | os.PathLike[str]) -> str"));

  m.def("sync_sections", &sync_sections, "store"_a, "tokenizer"_a, "tokenizer_name"_a,
        "chat_template"_a.none(), "eos_token"_a.none(), "sources"_a, "sequence_len"_a, "keep_end"_a,
        "default_excludes"_a, "gitignore"_a, "rehash"_a, "own_directory"_a.none(), "max_bytes"_a, "threads"_a,
        "notice"_a, "progress"_a.none(),
        nb::sig("def sync_sections(store: StoreBase, tokenizer: Any, tokenizer_name: str, chat_template: str "
                "| None, eos_token: str | None, "
                "sources: Sequence[tuple[Any, Any, Any, int, int, Any]], sequence_len: int, keep_end: bool, "
                "default_excludes: bool, "
                "gitignore: bool, rehash: bool, own_directory: pathlib.Path | None, max_bytes: int, threads: "
                "int, notice: "
                "Callable[[str], object], "
                "progress: Callable[[Progress], object] | None) -> SectionRun"));
  m.def("prune_sections", &prune_sections, "store"_a, "roots"_a, "older_than"_a, "progress"_a.none(),
        nb::sig("def prune_sections(store: Store, roots: Sequence[Any], older_than: float | "
                "datetime.timedelta | str, "
                "progress: Callable[[Progress], object] | None) -> RemovalReport"));
  m.def("read_dlm", &read_dlm, "path"_a, "home"_a,
        nb::sig("def read_dlm(path: str | os.PathLike[str], home: str | os.PathLike[str]) -> dict[str, Any]"),
        "The frontmatter of a .dlm document, as far as sections go.");
}

}  // namespace lmemo::python
