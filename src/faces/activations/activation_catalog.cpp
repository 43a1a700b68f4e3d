#include <algorithm>

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
  return {static_cast<ActivationPart>(bits >> 56), static_cast<TensorType>(bits >> 48 & 0xff), static_cast<uint16_t>(bits >> 32),
          static_cast<int32_t>(static_cast<uint32_t>(bits))};
}

}  // namespace

// Every entry of every prompt with its size: 16 bytes each, so that one that is shown twice or replaced is counted once.
class ActivationCatalog::View final : public Follower {
 public:
  struct Entry {
    uint64_t slot, stored_bytes;
  };
  struct Prompt {
    uint32_t model;
    std::vector<Entry> entries;
  };
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Numbers = std::unordered_map<std::string, uint32_t, TextHash, std::equal_to<>>;

  void start_over() override { *this = View(); }

  void see(const Seen& entry) override {
    SlotBits slot{};
    bool has_part = false;
    std::string_view prompt;
    model_text_.clear();
    for (const std::string_view field : entry.fields) {
      const std::optional<EncodedField> parts = parts_of_field(field);
      if (!parts) return;
      if (parts->name == "prompt") {
        prompt = field;
      } else if (parts->name == "layer" && parts->value.size() == sizeof(int64_t)) {
        const auto layer = load_le<int64_t>(parts->value.data());
        if (layer != static_cast<int32_t>(layer)) return;
        slot.layer = static_cast<int32_t>(layer);
      } else if (parts->name == "part") {
        const std::optional<ActivationPart> part = activation_part_named(parts->value);
        if (!part) return;
        slot.part = *part;
        has_part = true;
      } else if (parts->name == "stored") {
        slot.stored = tensor_type_named(parts->value).value_or(TensorType::none);
      } else if (parts->name == "pooling") {
        const uint32_t number = number_of(pooling_numbers_, parts->value, [&] { poolings_.emplace_back(parts->value); });
        if (number > UINT16_MAX) return;
        slot.pooling = static_cast<uint16_t>(number);
      } else {
        model_text_ += field;
      }
    }
    if (!has_part || prompt.empty()) return;
    const uint32_t model_number = number_of(model_numbers_, model_text_, [&] { models_.push_back(described(model_text_)); });
    ActivationModel& model = models_[model_number];
    prompt_text_.assign(reinterpret_cast<const char*>(&model_number), sizeof model_number);
    prompt_text_ += prompt;
    const uint32_t prompt_number = number_of(prompt_numbers_, prompt_text_, [&] {
      prompts_.push_back({model_number, {}});
      ++model.prompts;
    });
    add(model, prompts_[prompt_number], slot, entry);
  }

  const std::vector<ActivationModel>& models() const { return models_; }

  const Prompt* prompt(std::string_view model_encoding, std::string_view prompt_field) {
    const auto model = model_numbers_.find(model_encoding);
    if (model == model_numbers_.end()) return nullptr;
    prompt_text_.assign(reinterpret_cast<const char*>(&model->second), sizeof model->second);
    prompt_text_ += prompt_field;
    const auto found = prompt_numbers_.find(prompt_text_);
    return found == prompt_numbers_.end() ? nullptr : &prompts_[found->second];
  }
  const std::vector<Prompt>& prompts() const { return prompts_; }
  std::optional<uint32_t> model_number(std::string_view encoding) const {
    const auto found = model_numbers_.find(encoding);
    if (found == model_numbers_.end()) return std::nullopt;
    return found->second;
  }
  const std::string& pooling(uint16_t number) const { return poolings_[number]; }

 private:
  template <typename OnNew>
  static uint32_t number_of(Numbers& numbers, std::string_view text, const OnNew& on_new) {
    if (const auto found = numbers.find(text); found != numbers.end()) return found->second;
    const auto number = static_cast<uint32_t>(numbers.size());
    numbers.emplace(text, number);
    on_new();
    return number;
  }

  static ActivationModel described(const std::string& encoding) {
    ActivationModel model;
    model.encoding = encoding;
    model.hash = sha256(bytes_of(encoding)).hex().substr(0, 16);
    std::string rest;  // As a key of its own, to decode it.
    uint16_t count = 0;
    for (std::string_view left = encoding; !left.empty(); ++count) {
      const size_t name_end = 1 + static_cast<uint8_t>(left[0]);
      left.remove_prefix(name_end + 5 + load_le<uint32_t>(left.data() + name_end + 1));
    }
    rest += "\1x";
    append_le(rest, count);
    rest += encoding;
    if (const Result<Key> key = Key::from_encoding(bytes_of(rest)); key.ok())
      for (const Field& field : key->fields()) {
        const std::string* text = std::get_if<std::string>(&field.value.variant());
        model.fields.emplace_back(field.name, text != nullptr ? *text : field.value.describe());
        if (field.name == "model") model.name = model.fields.back().second;
      }
    return model;
  }

  static void add(ActivationModel& model, Prompt& prompt, const SlotBits& slot, const Seen& seen, const std::string& pooling) {
    const uint64_t bits = packed(slot);
    model.oldest_ns = model.oldest_ns == 0 ? seen.written_ns : std::min(model.oldest_ns, seen.written_ns);
    model.newest_ns = std::max(model.newest_ns, seen.written_ns);
    const auto known = std::find_if(prompt.entries.begin(), prompt.entries.end(), [&](const Entry& entry) { return entry.slot == bits; });
    if (known != prompt.entries.end()) {
      model.stored_bytes += seen.stored_bytes - known->stored_bytes;
      known->stored_bytes = seen.stored_bytes;
      return;
    }
    const bool has_layer_already = slot.part == ActivationPart::raw && std::any_of(prompt.entries.begin(), prompt.entries.end(), [&](const Entry& entry) {
      const SlotBits other = unpacked(entry.slot);
      return other.part == ActivationPart::raw && other.layer == slot.layer;
    });
    prompt.entries.push_back({bits, seen.stored_bytes});
    model.stored_bytes += seen.stored_bytes;
    ++model.entries;
    switch (slot.part) {
      case ActivationPart::raw: model.raw_layers[slot.layer] += !has_layer_already; break;
      case ActivationPart::pooled: model.poolings.insert(pooling); break;
      case ActivationPart::router: model.has_router = true; break;
      case ActivationPart::logits:
      case ActivationPart::top_k_logits: model.has_logits = true; break;
      case ActivationPart::perplexity: model.has_perplexity = true; break;
      case ActivationPart::token_perplexity: model.has_token_perplexity = true; break;
      case ActivationPart::mask: break;
    }
  }
  void add(ActivationModel& model, Prompt& prompt, const SlotBits& slot, const Seen& seen) {
    static const std::string kNone;
    add(model, prompt, slot, seen, slot.part == ActivationPart::pooled && slot.pooling < poolings_.size() ? poolings_[slot.pooling] : kNone);
  }

  std::vector<ActivationModel> models_;
  std::vector<Prompt> prompts_;
  std::vector<std::string> poolings_;
  Numbers model_numbers_, prompt_numbers_, pooling_numbers_;
  std::string model_text_, prompt_text_;  // Kept for their memory.
};

ActivationCatalog::ActivationCatalog(Store& store) : store_(store), view_(std::make_unique<View>()) {}
ActivationCatalog::~ActivationCatalog() = default;

Result<std::vector<ActivationModel>> ActivationCatalog::models() {
  const std::lock_guard<std::mutex> lock(mutex_);
  LMEMO_TRY(store_.follow(kActivationKind, position_, *view_));
  return view_->models();
}

Result<std::optional<DiscoveredPrompt>> ActivationCatalog::discover(std::string_view model_encoding, std::string_view prompt_field) {
  const std::lock_guard<std::mutex> lock(mutex_);
  LMEMO_TRY(store_.follow(kActivationKind, position_, *view_));
  const View::Prompt* prompt = view_->prompt(model_encoding, prompt_field);
  if (prompt == nullptr) return std::optional<DiscoveredPrompt>();
  DiscoveredPrompt found;
  for (const View::Entry& entry : prompt->entries) {
    const SlotBits slot = unpacked(entry.slot);
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
  }
  const auto sort = [](std::vector<DiscoveredPrompt::Layer>& layers) {
    std::sort(layers.begin(), layers.end(), [](const auto& a, const auto& b) { return a.layer != b.layer ? a.layer < b.layer : a.stored < b.stored; });
  };
  sort(found.raw);
  sort(found.router);
  for (auto& [pooling, layers] : found.pooled) sort(layers);
  return std::optional<DiscoveredPrompt>(std::move(found));
}

Result<std::vector<std::vector<bool>>> ActivationCatalog::coverage(std::string_view model_encoding, const std::vector<int64_t>& layers) {
  const std::lock_guard<std::mutex> lock(mutex_);
  LMEMO_TRY(store_.follow(kActivationKind, position_, *view_));
  std::vector<std::vector<bool>> rows;
  const std::optional<uint32_t> model = view_->model_number(model_encoding);
  if (!model) return rows;
  for (const View::Prompt& prompt : view_->prompts()) {
    if (prompt.model != *model) continue;
    std::vector<bool>& row = rows.emplace_back(layers.size());
    for (const View::Entry& entry : prompt.entries) {
      const SlotBits slot = unpacked(entry.slot);
      const auto place = std::find(layers.begin(), layers.end(), slot.layer);
      if (slot.part == ActivationPart::raw && place != layers.end()) row[static_cast<size_t>(place - layers.begin())] = true;
    }
  }
  return rows;
}

}  // namespace lmemo
