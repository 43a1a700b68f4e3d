// Binds a plain struct as a read-only Python class with repr, equality and to_dict().
//
//   RecordClass<KindStats>(m, "KindStats", "What is stored under one kind.")
//       .field("entries", &KindStats::entries, "Entries that can be found.");
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <type_traits>
#include <vector>

#include "values.h"

namespace lmemo::python {

nanobind::str repr_of_record(nanobind::handle record);
// For json.dumps: nested records become dicts, bytes hex, times ISO 8601, keys their kind, digest and fields.
nanobind::dict dict_of_record(nanobind::handle record);
bool records_equal(nanobind::handle one, nanobind::handle other);

template <typename T>
class RecordClass {
 public:
  RecordClass(nanobind::handle scope, const char* name, const char* doc)
      : class_(scope, name, doc, nanobind::is_final()) {
    class_.def("to_dict", &dict_of_record, nanobind::sig("def to_dict(self) -> dict[str, Any]"),
               "All of it as plain values that json.dumps takes.");
    class_.def("__repr__", &repr_of_record, nanobind::sig("def __repr__(self) -> str"));
    class_.def("__eq__", &records_equal, nanobind::sig("def __eq__(self, other: object, /) -> bool"));
    class_.attr("__hash__") = nanobind::none();
  }
  ~RecordClass() { class_.attr("_fields") = nanobind::tuple(names_); }
  RecordClass(const RecordClass&) = delete;
  RecordClass& operator=(const RecordClass&) = delete;

  template <typename Member>
  RecordClass& field(const char* name, Member T::* member, const char* doc) {
    // Texts may hold names of files, which may hold any bytes.
    const std::string signature = "def " + std::string(name) + "(self) -> ";
    if constexpr (std::is_same_v<Member, std::string>) {
      return computed(
          name, [member](const T& self) { return text_to_python(self.*member); }, (signature + "str").c_str(),
          doc);
    } else if constexpr (std::is_same_v<Member, std::vector<std::string>>) {
      return computed(
          name, [member](const T& self) { return texts_to_python(self.*member); },
          (signature + "list[str]").c_str(), doc);
    } else {
      class_.def_ro(name, member, doc);
      names_.append(name);
      return *this;
    }
  }
  // A field that is computed, with its signature: "def written(self) -> datetime.datetime".
  template <typename Getter>
  RecordClass& computed(const char* name, Getter&& getter, const char* signature, const char* doc) {
    class_.def_prop_ro(name, std::forward<Getter>(getter), nanobind::sig(signature), doc);
    names_.append(name);
    return *this;
  }
  nanobind::class_<T>& itself() { return class_; }

 private:
  nanobind::class_<T> class_;
  nanobind::list names_;
};

}  // namespace lmemo::python
