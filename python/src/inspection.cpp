// inspect_file(): what any file written by lmemo holds, damaged or not.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "errors.h"
#include "lmemo/inspect.h"
#include "record_class.h"
#include "values.h"

namespace nb = nanobind;

namespace lmemo::python {
namespace {

InspectedFile inspect(nb::handle path) {
  const std::filesystem::path file = path_of(path);
  std::optional<Result<InspectedFile>> result;
  {
    const nb::gil_scoped_release without_gil;
    result.emplace(inspect_file(file));
  }
  return value_or_raise(std::move(*result));
}

}  // namespace

void init_inspection(nb::module_& m) {
  RecordClass<InspectedRecord>(m, "InspectedRecord", "One sound record of a file.")
      .field("offset", &InspectedRecord::offset, "Where it starts.")
      .field("stored_bytes", &InspectedRecord::stored_bytes, "Its whole length.")
      .field("value_offset", &InspectedRecord::value_offset, "Where its value starts in the file.")
      .field("value_bytes", &InspectedRecord::value_bytes, "Length of its value.")
      .computed(
          "written", [](const InspectedRecord& self) { return time_to_python(self.written_ns); },
          "def written(self) -> datetime.datetime | None", "When it was put (UTC).")
      .field("is_erasure", &InspectedRecord::is_erasure, "It says that an entry is gone.")
      .computed(
          "digest", [](const InspectedRecord& self) { return bytes_to_python(self.digest.bytes); },
          "def digest(self) -> bytes", "The digest of its key.")
      .field("key", &InspectedRecord::key, "Its key; None for erasures and unreadable fields.");

  RecordClass<InspectedBlock>(m, "InspectedBlock", "One part of a file.")
      .field("name", &InspectedBlock::name, "\"header\", \"records\", \"index\", …")
      .field("offset", &InspectedBlock::offset, "Where it starts.")
      .field("byte_count", &InspectedBlock::byte_count, "Its length.")
      .field("is_sound", &InspectedBlock::is_sound, "It is what was written.")
      .field("note", &InspectedBlock::note, "What is wrong with it, or empty.");

  RecordClass<InspectedFile>(m, "InspectedFile", "What a file holds.")
      .field("file_bytes", &InspectedFile::file_bytes, "Its length.")
      .field("version", &InspectedFile::version, "The version of the format.")
      .field("nonce", &InspectedFile::nonce, "The random number of its writer.")
      .field("is_sealed", &InspectedFile::is_sealed, "It was finished: footer and index are sound.")
      .field("blocks", &InspectedFile::blocks, "Its parts, in order.")
      .field("records", &InspectedFile::records, "Its sound records, in order.")
      .field("problems", &InspectedFile::problems, "What is wrong with it.");

  m.def("inspect_file", &inspect, nb::arg("path"),
        nb::sig("def inspect_file(path: str | os.PathLike[str]) -> InspectedFile"),
        "Looks into a file that lmemo wrote, damaged or not, without opening a store. Raises lmemo.Error "
        "only if it "
        "cannot be read or is nothing that lmemo writes.");
}

}  // namespace lmemo::python
