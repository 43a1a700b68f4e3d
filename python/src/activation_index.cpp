// What is in the store, and removing it.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "errors.h"
#include "native_activations.h"
#include "values.h"

namespace nb = nanobind;

namespace lmemo::python {

nb::list NativeActivations::models() {
  nb::list list;
  for (const ActivationModel& model : models_now()) {
    nb::dict entry, fields;
    for (const auto& [name, value] : model.fields) fields[text_to_python(name)] = text_to_python(value);
    entry["fields"] = fields;
    entry["encoding"] = nb::bytes(model.encoding.data(), model.encoding.size());
    entry["keys"] = nb::cast(value_or_raise(ActivationKeys::of(model.model)));
    entry["name"] = text_to_python(model.name);
    entry["hash"] = model.hash;
    entry["stored_bytes"] = model.stored_bytes;
    entry["prompts"] = model.prompts;
    entry["entries"] = model.entries;
    entry["oldest_ns"] = model.oldest_ns;
    entry["newest_ns"] = model.newest_ns;
    nb::list layers;
    for (const auto& [layer, count] : model.raw_layers) layers.append(layer);
    entry["layers"] = layers;
    entry["has_pooled"] = !model.poolings.empty();
    entry["has_logits"] = model.has_logits;
    entry["has_perplexity"] = model.has_perplexity;
    list.append(entry);
  }
  return list;
}

nb::object NativeActivations::discover(const ActivationKeys& keys, nb::handle prompt) {
  std::string kept;
  const std::string prompt_field = ActivationKeys::prompt(prompt_bytes(prompt, kept));
  const std::optional<DiscoveredPrompt> found =
      value_or_raise(catalog().discover(keys.model_encoding(), prompt_field));
  const std::shared_ptr<Store> store = store_->hold();
  const PromptSizes sizes = found ? sizes_of(*store, keys, prompt_field, *found) : PromptSizes();
  store_->deliver_notices();
  if (!found) return nb::none();
  const auto layers = [](const std::vector<DiscoveredPrompt::Layer>& from) {
    nb::list list;
    for (const auto& [layer, stored] : from) list.append(nb::make_tuple(layer, name_of(stored).data()));
    return list;
  };
  const auto types = [](const std::vector<TensorType>& from) {
    nb::list list;
    for (const TensorType type : from) list.append(nb::str(name_of(type).data()));
    return list;
  };
  nb::dict pooled;
  for (const auto& [pooling, its_layers] : found->pooled)
    pooled[text_to_python(pooling)] = layers(its_layers);
  return nb::make_tuple(layers(found->raw), pooled, layers(found->router), types(found->logits),
                        types(found->top_k_logits), types(found->perplexity), types(found->token_perplexity),
                        sizes.tokens, sizes.top_k);
}

void NativeActivations::refresh() {
  const std::shared_ptr<Store> store = store_->hold();
  const nb::gil_scoped_release released;
  store->refresh();
}

uint64_t NativeActivations::stored_bytes() {
  uint64_t total = 0;
  for (const ActivationModel& model : models_now()) total += model.stored_bytes;
  return total;
}

std::pair<uint64_t, uint64_t> NativeActivations::evict(uint64_t target_bytes) {
  const RemovalReport report = value_or_raise(
      store_->without_gil([&](Store& store) { return store.evict_kind(kActivationKind, target_bytes); }));
  return {report.entries, report.stored_bytes};
}

ActivationCatalog& NativeActivations::catalog() {
  const std::shared_ptr<Store> store = store_->hold();
  const PythonLock lock(mutex_);
  if (store != followed_) {
    catalog_ = std::make_unique<ActivationCatalog>(*store);
    followed_ = store;
  }
  return *catalog_;
}

std::vector<ActivationModel> NativeActivations::models_now() {
  ActivationCatalog& known = catalog();
  std::optional<Result<std::vector<ActivationModel>>> models;
  {
    const nb::gil_scoped_release released;
    models.emplace(known.models());
  }
  store_->deliver_notices();
  return value_or_raise(std::move(*models));
}

}  // namespace lmemo::python
