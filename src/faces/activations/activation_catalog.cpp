#include <algorithm>
#include <deque>

#include "base/little_endian.h"
#include "base/sha256.h"
#include "lmemo/activations.h"
#include "store/fields_block.h"

namespace lmemo {
namespace {

struct SlotBits {
  ActivationPart part;
  TensorType stored;
  uint16_t pooling;
  int32_t layer;
};
uint64_t packed(const SlotBits& slot) {
  return uint64_t{static_cast<uint8_t>(slot.part)} << 56 | uint64_t{static_cast<uint8_t>(slot.stored)} << 48 |
         uint64_t{slot.pooling} << 32 | static_cast<uint32_t>(slot.layer);
}
SlotBits unpacked(uint64_t bits) {
  return {static_cast<ActivationPart>(bits >> 56), static_cast<TensorType>(bits >> 48 & 0xff),
          static_cast<uint16_t>(bits >> 32), static_cast<int32_t>(static_cast<uint32_t>(bits))};
}

// Texts and their numbers, from 0 in the order they came. One table and one block of memory: a store has a hundred thousand prompts.
class TextNumbers {
 public:
  uint32_t size() const { return static_cast<uint32_t>(ends_.size()); }

  std::optional<uint32_t> find(std::string_view text) const {
    if (table_.empty()) return std::nullopt;
    const Place place = table_[place_of(hash_of(text), text)];
    if (place.number == kNobody) return std::nullopt;
    return place.number;
  }
  uint32_t add(std::string_view text) {
    if (2 * (size() + 1u) > table_.size()) grow();
    const uint32_t hash = hash_of(text);
    Place& place = table_[place_of(hash, text)];
    if (place.number != kNobody) return place.number;
    place = {hash, size()};
    texts_ += text;
    ends_.push_back(texts_.size());
    return place.number;
  }
  std::string_view text(uint32_t number) const {
    const uint64_t start = number == 0 ? 0 : ends_[number - 1];
    return std::string_view(texts_).substr(start, ends_[number] - start);
  }

 private:
  static constexpr uint32_t kNobody = UINT32_MAX;
  struct Place {
    uint32_t hash = 0;  // Beside the number, so that another text is seldom looked at.
    uint32_t number = kNobody;
  };

  static uint32_t hash_of(std::string_view text) {
    return static_cast<uint32_t>(std::hash<std::string_view>()(text));
  }

  size_t place_of(uint32_t hash, std::string_view text) const {
    const size_t last = table_.size() - 1;
    size_t at = hash & last;
    while (table_[at].number != kNobody && (table_[at].hash != hash || this->text(table_[at].number) != text))
      at = (at + 1) & last;
    return at;
  }
  void grow() {
    std::vector<Place> old(std::max<size_t>(64, 4 * table_.size()));
    old.swap(table_);
    for (const Place& place : old) {
      if (place.number == kNobody) continue;
      size_t at = place.hash & (table_.size() - 1);
      while (table_[at].number != kNobody) at = (at + 1) & (table_.size() - 1);
      table_[at] = place;
    }
  }

  std::string texts_;
  std::vector<uint64_t> ends_;
  std::vector<Place> table_;  // A power of two, at most half full.
};

}  // namespace

// Every entry of every prompt with its size, so that one that is shown twice or replaced is counted once.
//
// A published segment names each distinct field once, so each is decoded once; what is left for an entry is a handful of numbers.
class ActivationCatalog::View final : public Follower {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Entry {
    uint64_t slot, stored_bytes;
    uint32_t next;  // Of the same prompt.
  };
  struct Prompt {
    uint32_t model, text, first_entry = kNone;
    uint32_t next;           // The same text with another model.
    uint64_t slot_bits = 0;  // One bit for each slot: where it is not set, the slot is new.
  };

  void start_over() override { *this = View(); }

  void see(const Seen& seen) override {
    if (seen.group != group_ || seen.numbers.empty()) known_.clear();
    group_ = seen.group;
    SlotBits slot{};
    bool has_part = false;
    uint32_t text = kNone, prompt = kNone;
    size_t prompt_field = 0;
    model_fields_.clear();
    for (size_t i = 0; i < seen.fields.size(); ++i) {
      const Known field =
          seen.numbers.empty() ? decoded(seen.fields[i]) : known(seen.numbers[i], seen.fields[i]);
      switch (field.role) {
        case Role::text:
          text = field.value;
          prompt_field = i;
          break;
        case Role::prompt: prompt = field.value; break;
        case Role::layer: slot.layer = static_cast<int32_t>(field.value); break;
        case Role::stored: slot.stored = static_cast<TensorType>(field.value); break;
        case Role::pooling: slot.pooling = static_cast<uint16_t>(field.value); break;
        case Role::model: model_fields_.push_back(field.value); break;
        case Role::part:
          slot.part = static_cast<ActivationPart>(field.value);
          has_part = true;
          break;
        case Role::unknown:
        case Role::not_ours: return;
      }
    }
    if (!has_part || (text == kNone && prompt == kNone)) return;
    const uint32_t model = model_of_fields();
    if (prompt == kNone || prompts_[prompt].model != model) {
      prompt = prompt_of(prompt == kNone ? text : prompts_[prompt].text, model);
      // The next entry with this field is most likely of the same prompt.
      if (text != kNone && !seen.numbers.empty()) known_[seen.numbers[prompt_field]] = {Role::prompt, prompt};
    }
    add(models_[model], prompts_[prompt], slot, seen);
  }

  const std::vector<ActivationModel>& models() const { return models_; }
  const std::vector<Prompt>& prompts() const { return prompts_; }
  const std::string& pooling(uint16_t number) const { return pooling_names_[number]; }

  const Prompt* prompt(std::string_view model_encoding, std::string_view prompt_field) const {
    const std::optional<uint32_t> model = model_number(model_encoding),
                                  text = prompt_texts_.find(prompt_field);
    if (!model || !text) return nullptr;
    const uint32_t found = find_prompt(*text, *model);
    return found == kNone ? nullptr : &prompts_[found];
  }
  std::optional<uint32_t> model_number(std::string_view encoding) const {
    const auto found = std::find_if(models_.begin(), models_.end(),
                                    [&](const ActivationModel& model) { return model.encoding == encoding; });
    if (found == models_.end()) return std::nullopt;
    return static_cast<uint32_t>(found - models_.begin());
  }
  template <typename Visit>
  void for_each_entry(const Prompt& prompt, const Visit& visit) const {
    for (uint32_t entry = prompt.first_entry; entry != kNone; entry = entries_[entry].next)
      visit(unpacked(entries_[entry].slot));
  }

 private:
  enum class Role : uint8_t { unknown, text, prompt, layer, part, stored, pooling, model, not_ours };
  struct Known {
    Role role = Role::unknown;
    uint32_t value = 0;
  };

  Known known(uint32_t number, std::string_view field) {
    if (number >= known_.size()) known_.resize(std::max<size_t>(number + 1u, 2 * known_.size()));
    if (known_[number].role == Role::unknown) known_[number] = decoded(field);
    return known_[number];
  }

  Known decoded(std::string_view field) {
    const std::optional<EncodedField> parts = parts_of_field(field);
    if (!parts) return {Role::not_ours};
    if (parts->name == "prompt") {
      const uint32_t text = prompt_texts_.add(field);
      if (text == first_prompts_.size()) first_prompts_.push_back(kNone);
      return {Role::text, text};
    }
    if (parts->name == "layer" && parts->value.size() == sizeof(int64_t)) {
      const auto layer = load_le<int64_t>(parts->value.data());
      if (layer != static_cast<int32_t>(layer)) return {Role::not_ours};
      return {Role::layer, static_cast<uint32_t>(layer)};
    }
    if (parts->name == "part") {
      const std::optional<ActivationPart> part = activation_part_named(parts->value);
      return part ? Known{Role::part, static_cast<uint32_t>(*part)} : Known{Role::not_ours};
    }
    if (parts->name == "stored")
      return {Role::stored,
              static_cast<uint32_t>(tensor_type_named(parts->value).value_or(TensorType::none))};
    if (parts->name == "pooling") {
      const uint32_t number = poolings_.add(parts->value);
      if (number > UINT16_MAX) return {Role::not_ours};
      if (number == pooling_names_.size()) pooling_names_.emplace_back(parts->value);
      return {Role::pooling, number};
    }
    return {Role::model, model_field_texts_.add(field)};
  }

  uint32_t model_of_fields() {
    if (last_model_ < models_.size() && fields_of_models_[last_model_] == model_fields_) return last_model_;
    const auto found = std::find(fields_of_models_.begin(), fields_of_models_.end(), model_fields_);
    last_model_ = static_cast<uint32_t>(found - fields_of_models_.begin());
    if (found == fields_of_models_.end()) {
      std::string encoding;
      for (const uint32_t field : model_fields_) encoding += model_field_texts_.text(field);
      models_.push_back(described(encoding));
      fields_of_models_.push_back(model_fields_);
    }
    return last_model_;
  }

  uint32_t find_prompt(uint32_t text, uint32_t model) const {
    uint32_t prompt = first_prompts_[text];
    while (prompt != kNone && prompts_[prompt].model != model) prompt = prompts_[prompt].next;
    return prompt;
  }
  uint32_t prompt_of(uint32_t text, uint32_t model) {
    if (const uint32_t found = find_prompt(text, model); found != kNone) return found;
    prompts_.push_back({.model = model, .text = text, .next = first_prompts_[text]});
    ++models_[model].prompts;
    return first_prompts_[text] = static_cast<uint32_t>(prompts_.size() - 1);
  }

  static ActivationModel described(const std::string& encoding) {
    ActivationModel model;
    model.encoding = encoding;
    model.hash = sha256(bytes_of(encoding)).hex().substr(0, 16);
    uint16_t count = 0;
    for (std::string_view left = encoding; !left.empty(); ++count) {
      const size_t name_end = 1 + static_cast<uint8_t>(left[0]);
      left.remove_prefix(name_end + 5 + load_le<uint32_t>(left.data() + name_end + 1));
    }
    std::string alone = "\1x";  // As a key of its own, to decode it.
    append_le(alone, count);
    alone += encoding;
    const Result<Key> key = Key::from_encoding(bytes_of(alone));
    if (!key.ok()) return model;
    model.model = key->fields();
    for (const Field& field : model.model) {
      const std::string* text = std::get_if<std::string>(&field.value.variant());
      model.fields.emplace_back(field.name, text != nullptr ? *text : field.value.describe());
      if (field.name == "model") model.name = model.fields.back().second;
    }
    return model;
  }

  void add(ActivationModel& model, Prompt& prompt, const SlotBits& slot, const Seen& seen) {
    const uint64_t bits = packed(slot);
    model.oldest_ns = model.oldest_ns == 0 ? seen.written_ns : std::min(model.oldest_ns, seen.written_ns);
    model.newest_ns = std::max(model.newest_ns, seen.written_ns);
    // A layer that is there in another type shares its bit.
    const uint64_t bit =
        uint64_t{1} << ((static_cast<uint32_t>(slot.layer) + 11 * static_cast<uint32_t>(slot.part)) % 64);
    bool has_layer_already = false;
    if (prompt.slot_bits & bit) {
      for (uint32_t number = prompt.first_entry; number != kNone; number = entries_[number].next) {
        Entry& entry = entries_[number];
        if (entry.slot == bits) {
          model.stored_bytes += seen.stored_bytes - entry.stored_bytes;
          entry.stored_bytes = seen.stored_bytes;
          return;
        }
        const SlotBits other = unpacked(entry.slot);
        has_layer_already |= other.part == ActivationPart::raw && other.layer == slot.layer;
      }
    }
    prompt.slot_bits |= bit;
    entries_.push_back({bits, seen.stored_bytes, prompt.first_entry});
    prompt.first_entry = static_cast<uint32_t>(entries_.size() - 1);
    model.stored_bytes += seen.stored_bytes;
    ++model.entries;
    switch (slot.part) {
      case ActivationPart::raw: model.raw_layers[slot.layer] += !has_layer_already; break;
      case ActivationPart::pooled:
        model.poolings.insert(slot.pooling < pooling_names_.size() ? pooling_names_[slot.pooling] : "");
        break;
      case ActivationPart::router: model.has_router = true; break;
      case ActivationPart::logits:
      case ActivationPart::top_k_logits: model.has_logits = true; break;
      case ActivationPart::perplexity: model.has_perplexity = true; break;
      case ActivationPart::token_perplexity: model.has_token_perplexity = true; break;
      case ActivationPart::mask: break;
    }
  }

  std::vector<ActivationModel> models_;
  std::vector<std::vector<uint32_t>> fields_of_models_;  // As numbers of model_field_texts_.
  std::vector<Prompt> prompts_;
  std::vector<uint32_t> first_prompts_;  // For each text.
  std::deque<Entry> entries_;            // Grows without being copied.
  std::vector<std::string> pooling_names_;
  TextNumbers prompt_texts_, model_field_texts_, poolings_;
  uint64_t group_ = 0;
  std::vector<Known> known_;  // The fields of the group, by number.
  uint32_t last_model_ = 0;
  std::vector<uint32_t> model_fields_;  // Kept for its memory.
};

PromptSizes sizes_of(Store& store, const ActivationKeys& keys, std::string_view prompt_field,
                     const DiscoveredPrompt& prompt) {
  PromptSizes sizes;
  const auto with_first_tensor = [&](ActivationPart part, TensorType stored, const auto& visit) {
    const std::optional<Hit> hit = store.find(keys.digest(prompt_field, {part, 0, "", stored}));
    if (!hit) return;
    if (const auto tensors = read_tensors(hit->value()); tensors.ok() && !tensors->empty())
      visit(tensors->front());
  };
  if (prompt.has_mask)
    with_first_tensor(ActivationPart::mask, TensorType::none, [&](const TensorView& mask) {
      const size_t size = bytes_per_element(mask.type);
      sizes.tokens = 0;
      for (Bytes left = mask.stored; left.size() >= size; left = left.subspan(size))
        *sizes.tokens +=
            std::ranges::any_of(left.first(size), [](std::byte byte) { return byte != std::byte{0}; });
    });
  for (const TensorType stored : prompt.top_k_logits)
    if (!sizes.top_k)
      with_first_tensor(ActivationPart::top_k_logits, stored, [&](const TensorView& values) {
        if (!values.shape.empty()) sizes.top_k = values.shape.back();
      });
  return sizes;
}

ActivationCatalog::ActivationCatalog(Store& store) : store_(store), view_(std::make_unique<View>()) {}
ActivationCatalog::~ActivationCatalog() = default;

Result<std::vector<ActivationModel>> ActivationCatalog::models() {
  const std::lock_guard<std::mutex> lock(mutex_);
  LMEMO_TRY(store_.follow(kActivationKind, position_, *view_));
  return view_->models();
}

Result<std::optional<DiscoveredPrompt>> ActivationCatalog::discover(std::string_view model_encoding,
                                                                    std::string_view prompt_field) {
  const std::lock_guard<std::mutex> lock(mutex_);
  LMEMO_TRY(store_.follow(kActivationKind, position_, *view_));
  const View::Prompt* prompt = view_->prompt(model_encoding, prompt_field);
  if (prompt == nullptr) return std::optional<DiscoveredPrompt>();
  DiscoveredPrompt found;
  view_->for_each_entry(*prompt, [&](const SlotBits& slot) {
    const DiscoveredPrompt::Layer layer{slot.layer, slot.stored};
    switch (slot.part) {
      case ActivationPart::raw: found.raw.push_back(layer); break;
      case ActivationPart::pooled: found.pooled[view_->pooling(slot.pooling)].push_back(layer); break;
      case ActivationPart::router: found.router.push_back(layer); break;
      case ActivationPart::logits: found.logits.push_back(slot.stored); break;
      case ActivationPart::top_k_logits: found.top_k_logits.push_back(slot.stored); break;
      case ActivationPart::perplexity: found.perplexity.push_back(slot.stored); break;
      case ActivationPart::token_perplexity: found.token_perplexity.push_back(slot.stored); break;
      case ActivationPart::mask: found.has_mask = true; break;
    }
  });
  const auto sort = [](std::vector<DiscoveredPrompt::Layer>& layers) {
    std::sort(layers.begin(), layers.end(), [](const auto& a, const auto& b) {
      return a.layer != b.layer ? a.layer < b.layer : a.stored < b.stored;
    });
  };
  sort(found.raw);
  sort(found.router);
  for (auto& [pooling, layers] : found.pooled) sort(layers);
  return std::optional<DiscoveredPrompt>(std::move(found));
}

Result<std::vector<std::vector<bool>>> ActivationCatalog::coverage(std::string_view model_encoding,
                                                                   const std::vector<int64_t>& layers) {
  const std::lock_guard<std::mutex> lock(mutex_);
  LMEMO_TRY(store_.follow(kActivationKind, position_, *view_));
  std::vector<std::vector<bool>> rows;
  const std::optional<uint32_t> model = view_->model_number(model_encoding);
  if (!model) return rows;
  for (const View::Prompt& prompt : view_->prompts()) {
    if (prompt.model != *model) continue;
    std::vector<bool>& row = rows.emplace_back(layers.size());
    view_->for_each_entry(prompt, [&](const SlotBits& slot) {
      const auto place = std::find(layers.begin(), layers.end(), slot.layer);
      if (slot.part == ActivationPart::raw && place != layers.end())
        row[static_cast<size_t>(place - layers.begin())] = true;
    });
  }
  return rows;
}

}  // namespace lmemo
