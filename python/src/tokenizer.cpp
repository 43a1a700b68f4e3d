// lmemo._core.NativeTokenizer: the compiled tokenizer. lmemo/tokenizer.py puts lmemo.Tokenizer in front of it.

#include "lmemo/tokenizer.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <utility>
#include <vector>

#include "bindings.h"
#include "errors.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {
namespace {

using SharedTokenizer = std::shared_ptr<const Tokenizer>;

// The native tokenizer never changes, which Python has no word for.
struct NativeTokenizer {
  SharedTokenizer tokenizer;
};

// A numpy array that owns the numbers: nothing is copied.
template <typename Number>
nb::object array_of(std::vector<Number> numbers) {
  auto* owned = new std::vector<Number>(std::move(numbers));
  nb::capsule owner(owned, [](void* vector) noexcept { delete static_cast<std::vector<Number>*>(vector); });
  return nb::ndarray<nb::numpy, Number, nb::ndim<1>>(owned->data(), {owned->size()}, owner).cast();
}

// The UTF-8 of a str (kept by Python inside it) or of a bytes object, for as long as the object lives.
std::string_view text_view(nb::handle text) {
  if (PyBytes_Check(text.ptr()))
    return {PyBytes_AS_STRING(text.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(text.ptr()))};
  if (!PyUnicode_Check(text.ptr())) throw nb::type_error("a text must be str or bytes");
  Py_ssize_t byte_count = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &byte_count);
  if (!utf8) throw nb::python_error();
  return {utf8, static_cast<size_t>(byte_count)};
}

NativeTokenizer tokenizer_from_json(nb::handle json) {
  const std::string_view text = text_view(json);
  Result<SharedTokenizer> tokenizer = [&] {
    nb::gil_scoped_release release;
    return Tokenizer::from_json(text);
  }();
  return {value_or_raise(std::move(tokenizer))};
}

nb::object encode(const NativeTokenizer& self, nb::handle text, bool add_special_tokens) {
  const std::string_view view = text_view(text);
  Result<std::vector<uint32_t>> ids = [&] {
    nb::gil_scoped_release release;
    return self.tokenizer->encode(view, {add_special_tokens});
  }();
  return array_of(value_or_raise(std::move(ids)));
}

nb::tuple encode_batch(const NativeTokenizer& self, nb::handle texts, bool add_special_tokens,
                       unsigned threads) {
  // The list keeps the texts alive while the GIL is released, whatever happens to what was given.
  const nb::list kept = nb::steal<nb::list>(PySequence_List(texts.ptr()));
  if (!kept.ptr()) throw nb::python_error();
  std::vector<std::string_view> views;
  views.reserve(kept.size());
  for (const nb::handle text : kept) views.push_back(text_view(text));
  Result<TokenBatch> batch = [&] {
    nb::gil_scoped_release release;
    return self.tokenizer->encode_batch(views, {add_special_tokens}, threads);
  }();
  TokenBatch done = value_or_raise(std::move(batch));
  return nb::make_tuple(array_of(std::move(done.ids)), array_of(std::move(done.offsets)));
}

std::string decode(const NativeTokenizer& self, const nb::object& ids, bool skip_special_tokens) {
  std::vector<uint32_t> numbers;
  for (const nb::handle id : ids) numbers.push_back(nb::cast<uint32_t>(nb::int_(id)));
  return value_or_raise(self.tokenizer->decode(numbers, {skip_special_tokens}));
}

}  // namespace

void init_tokenizers(nb::module_& m) {
  nb::class_<NativeTokenizer>(m, "NativeTokenizer", "The compiled engine behind lmemo.Tokenizer.")
      .def_static("from_json", &tokenizer_from_json, "json"_a,
                  nb::sig("def from_json(json: str | bytes) -> NativeTokenizer"),
                  "Builds the tokenizer that the text of a tokenizer.json describes.")
      .def("encode", &encode, "text"_a, "add_special_tokens"_a,
           nb::sig("def encode(self, text: str | bytes, add_special_tokens: bool) -> NDArray[numpy.uint32]"))
      .def("encode_batch", &encode_batch, "texts"_a, "add_special_tokens"_a, "threads"_a,
           nb::sig(
               "def encode_batch(self, texts: Iterable[str | bytes], add_special_tokens: bool, threads: int) "
               "-> tuple[NDArray[numpy.uint32], NDArray[numpy.uint64]]"),
           "All ids in one array, and where each text starts in it. `threads` 0 is one per core.")
      .def("decode", &decode, "ids"_a, "skip_special_tokens"_a,
           nb::sig("def decode(self, ids: Iterable[int], skip_special_tokens: bool) -> str"))
      .def(
          "token_to_id",
          [](const NativeTokenizer& self, nb::handle token) {
            return self.tokenizer->token_to_id(text_view(token));
          },
          "token"_a, nb::sig("def token_to_id(self, token: str) -> int | None"))
      .def(
          "id_to_token",
          [](const NativeTokenizer& self, uint32_t id) { return self.tokenizer->id_to_token(id); }, "id"_a)
      .def_prop_ro("vocab_size", [](const NativeTokenizer& self) { return self.tokenizer->vocab_size(); })
      .def_prop_ro("fingerprint",
                   [](const NativeTokenizer& self) { return self.tokenizer->identity().hex(); })
      .def_prop_ro("engine",
                   [](const NativeTokenizer& self) { return std::string(self.tokenizer->engine()); });
}

}  // namespace lmemo::python
