#include "tokenizer/reference/post_processor.h"

#include <limits>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "tokenizer/json_fields.h"
#include "tokenizer/reference/byte_level_options.h"

namespace lmemo::tokenizer {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxId = std::numeric_limits<uint32_t>::max();

// Only offsets, which we do not give, depend on it.
class ByteLevelProcessor final : public PostProcessor {
 public:
  std::vector<Ids> process(std::vector<Ids> sequences, bool) const override { return sequences; }
  Result<size_t> count_after(size_t sequences, bool) const override { return sequences; }
  size_t added_count() const override { return 0; }
};

// BertProcessing, [CLS] A [SEP] B [SEP], and RobertaProcessing, <s> A </s> </s> B </s>.
class FrameProcessor final : public PostProcessor {
 public:
  FrameProcessor(uint32_t cls, uint32_t sep, bool doubles_sep)
      : cls_(cls), sep_(sep), doubles_sep_(doubles_sep) {}

  std::vector<Ids> process(std::vector<Ids> sequences, bool add_special_tokens) const override {
    if (!add_special_tokens) return sequences;
    for (size_t i = 0; i < sequences.size(); ++i) {
      if (i == 0 || doubles_sep_) sequences[i].insert(sequences[i].begin(), i == 0 ? cls_ : sep_);
      sequences[i].push_back(sep_);
    }
    return sequences;
  }
  Result<size_t> count_after(size_t sequences, bool) const override { return sequences; }
  size_t added_count() const override { return 2; }

 private:
  uint32_t cls_;
  uint32_t sep_;
  bool doubles_sep_;
};

class TemplateProcessor final : public PostProcessor {
 public:
  // Ids to add, or the sequence to put here: 0 for A, 1 for B.
  struct Part {
    Ids ids;
    int sequence = -1;
  };

  TemplateProcessor(std::vector<Part> single, std::vector<Part> pair, std::string where)
      : single_(std::move(single)), pair_(std::move(pair)), where_(std::move(where)) {}

  std::vector<Ids> process(std::vector<Ids> sequences, bool add_special_tokens) const override {
    std::vector<Ids> result;
    for (const Part& part : sequences.size() == 2 ? pair_ : single_) {
      if (part.sequence >= 0) {
        result.push_back(sequences[static_cast<size_t>(part.sequence)]);
      } else if (add_special_tokens) {
        result.push_back(part.ids);
      }
    }
    return result;
  }

  Result<size_t> count_after(size_t sequences, bool add_special_tokens) const override {
    if (sequences != 1 && sequences != 2)
      return refusal(
          where_, "gets " + std::to_string(sequences) + " sequences from the processor before; takes 1 or 2");
    size_t count = 0;
    for (const Part& part : sequences == 2 ? pair_ : single_) {
      if (part.sequence >= static_cast<int>(sequences))
        return refusal(where_ + ".single", "names sequence B, which a single text does not have");
      count += part.sequence >= 0 || add_special_tokens;
    }
    return count;
  }

  size_t added_count() const override {
    size_t count = 0;
    for (const Part& part : single_) count += part.ids.size();
    return count;
  }

 private:
  std::vector<Part> single_;
  std::vector<Part> pair_;
  std::string where_;
};

class SequenceProcessor final : public PostProcessor {
 public:
  explicit SequenceProcessor(std::vector<std::unique_ptr<PostProcessor>> steps) : steps_(std::move(steps)) {}

  std::vector<Ids> process(std::vector<Ids> sequences, bool add_special_tokens) const override {
    for (const auto& step : steps_) sequences = step->process(std::move(sequences), add_special_tokens);
    return sequences;
  }
  Result<size_t> count_after(size_t sequences, bool add_special_tokens) const override {
    for (const auto& step : steps_) {
      LMEMO_ASSIGN(sequences, step->count_after(sequences, add_special_tokens));
    }
    return sequences;
  }
  size_t added_count() const override {
    size_t count = 0;
    for (const auto& step : steps_) count += step->added_count();
    return count;
  }

 private:
  std::vector<std::unique_ptr<PostProcessor>> steps_;
};

using SpecialIds = std::map<std::string, Ids>;

Result<SpecialIds> special_ids_in(const Fields& fields) {
  LMEMO_ASSIGN(const Json* json, fields.get("special_tokens"));
  const std::string where = fields.where("special_tokens");
  LMEMO_TRY(Fields::of(*json, where));
  SpecialIds specials;
  for (const auto& [name, value] : json->items()) {
    LMEMO_ASSIGN(const Fields token, Fields::of(value, where + "." + name));
    LMEMO_TRY(token.text("id"));
    LMEMO_ASSIGN(const Json* ids, token.list("ids"));
    LMEMO_ASSIGN(const Json* words, token.list("tokens"));
    for (const Json& word : *words) LMEMO_TRY(text_in(word, token.where("tokens")));
    Ids& list = specials[name];
    for (const Json& id : *ids) {
      LMEMO_ASSIGN(const uint64_t number, number_in(id, kMaxId, token.where("ids")));
      list.push_back(static_cast<uint32_t>(number));
    }
  }
  return specials;
}

// [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
Result<std::vector<TemplateProcessor::Part>> template_in(const Fields& fields, std::string_view name,
                                                         const SpecialIds& specials) {
  LMEMO_ASSIGN(const Json* json, fields.get(name));
  if (!json->is_array()) return refusal(fields.where(name), "expected an array");
  std::vector<TemplateProcessor::Part> parts;
  for (size_t i = 0; i < json->size(); ++i) {
    const std::string where = fields.where(name) + "[" + std::to_string(i) + "]";
    const Json& item = (*json)[i];
    if (!item.is_object() || item.size() != 1)
      return refusal(where, "expected {\"SpecialToken\": …} or {\"Sequence\": …}");
    const std::string kind = item.begin().key();
    LMEMO_ASSIGN(const Fields part, Fields::of(item.begin().value(), where + "." + kind));
    LMEMO_ASSIGN(const std::string id, part.text("id"));
    LMEMO_TRY(part.number("type_id", kMaxId));
    if (kind == "Sequence" && (id == "A" || id == "B")) {
      parts.push_back({{}, id == "A" ? 0 : 1});
    } else if (kind == "SpecialToken") {
      const auto found = specials.find(id);
      if (found == specials.end()) return refusal(where, shown(id) + " is not one of special_tokens");
      parts.push_back({found->second, -1});
    } else {
      return refusal(where, "expected a SpecialToken, or the Sequence A or B");
    }
  }
  return parts;
}

Result<std::unique_ptr<PostProcessor>> make_template(const Fields& fields) {
  LMEMO_TRY(fields.expect_only({"type", "single", "pair", "special_tokens"}));
  LMEMO_ASSIGN(const SpecialIds specials, special_ids_in(fields));
  LMEMO_ASSIGN(auto single, template_in(fields, "single", specials));
  LMEMO_ASSIGN(auto pair, template_in(fields, "pair", specials));
  return std::unique_ptr<PostProcessor>(
      new TemplateProcessor(std::move(single), std::move(pair), fields.where()));
}

// ["[CLS]", 101]
Result<uint32_t> framed_id_in(const Fields& fields, std::string_view name) {
  LMEMO_ASSIGN(const Json* json, fields.get(name));
  if (!json->is_array() || json->size() != 2 || !(*json)[0].is_string())
    return refusal(fields.where(name), "expected [\"token\", id]");
  LMEMO_ASSIGN(const uint64_t id, number_in((*json)[1], kMaxId, fields.where(name)));
  return static_cast<uint32_t>(id);
}

Result<std::unique_ptr<PostProcessor>> make_frame(const Fields& fields, bool is_roberta) {
  LMEMO_ASSIGN(const uint32_t sep, framed_id_in(fields, "sep"));
  LMEMO_ASSIGN(const uint32_t cls, framed_id_in(fields, "cls"));
  if (is_roberta) {
    LMEMO_TRY(fields.expect_only({"type", "sep", "cls", "trim_offsets", "add_prefix_space"}));
    LMEMO_TRY(fields.flag("trim_offsets"));
    LMEMO_TRY(fields.flag("add_prefix_space"));
  } else {
    LMEMO_TRY(fields.expect_only({"type", "sep", "cls"}));
  }
  return std::unique_ptr<PostProcessor>(new FrameProcessor(cls, sep, is_roberta));
}

Result<std::unique_ptr<PostProcessor>> make_step(const Json& json, const std::string& where) {
  LMEMO_ASSIGN(const Fields fields, Fields::of(json, where));
  LMEMO_ASSIGN(const std::string type, fields.text("type"));
  if (type == "TemplateProcessing") return make_template(fields);
  if (type == "BertProcessing") return make_frame(fields, false);
  if (type == "RobertaProcessing") return make_frame(fields, true);
  if (type == "ByteLevel") {
    LMEMO_TRY(byte_level_options_in(fields));
    return std::unique_ptr<PostProcessor>(new ByteLevelProcessor);
  }
  if (type == "Sequence") {
    LMEMO_TRY(fields.expect_only({"type", "processors"}));
    LMEMO_ASSIGN(const Json* list, fields.list("processors"));
    std::vector<std::unique_ptr<PostProcessor>> steps;
    for (size_t i = 0; i < list->size(); ++i) {
      LMEMO_ASSIGN(auto step,
                   make_step((*list)[i], fields.where("processors") + "[" + std::to_string(i) + "]"));
      steps.push_back(std::move(step));
    }
    return std::unique_ptr<PostProcessor>(new SequenceProcessor(std::move(steps)));
  }
  return refusal(where + ".type", "post-processor " + shown(type) + " is not known");
}

}  // namespace

Result<std::unique_ptr<PostProcessor>> make_post_processor(const Json& json, const std::string& where) {
  if (json.is_null()) return std::unique_ptr<PostProcessor>();
  LMEMO_ASSIGN(auto processor, make_step(json, where));
  for (const bool add_special_tokens : {false, true})
    LMEMO_TRY(processor->count_after(1, add_special_tokens));
  return processor;
}

}  // namespace lmemo::tokenizer
