#include "faces/dataset/row_maker.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/json_writer.h"
#include "base/little_endian.h"
#include "base/sha256.h"

// Which ids are learned is found by cuts in the text: a cut is exact if no token reaches across it. Two proofs, the
// second only where the first fails: the parts, encoded one by one, give the ids of the whole; or the ids of the text
// up to the cut are the first ids of the whole. A row without proof is refused: a wrong mask would be learned.

namespace lmemo::dataset {
namespace {

constexpr std::array<std::string_view, 5> kChatmlRoles = {"system", "developer", "user", "assistant", "tool"};

void add_part(std::string& to, std::string_view part) {
  append_le(to, uint64_t{part.size()});
  to += part;
}

Digest digest_of_text(std::string_view text) { return sha256(bytes_of(text)); }

Digest digest_of_parts(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts) add_part(all, part);
  return sha256(bytes_of(all));
}

// Runs of a row whose cuts are these numbers of ids.
LearnedRuns runs_of_cuts(const std::vector<uint32_t>& cuts, uint32_t id_count) {
  LearnedRuns runs;
  uint32_t before = 0;
  for (const uint32_t cut : cuts) {
    runs.push_back(cut - before);
    before = cut;
  }
  runs.push_back(id_count - before);
  return runs;
}

bool starts_with(std::span<const uint32_t> ids, std::span<const uint32_t> front) {
  return front.size() <= ids.size() && std::equal(front.begin(), front.end(), ids.begin());
}

constexpr const char* kInexact = "inexact mask: a token reaches across the start or end of what is learned";

}  // namespace

RowMaker::RowMaker(const RowRecipe& recipe, const Tokenizer& tokenizer, const KnownRows& known,
                   const RenderChats& render)
    : recipe_(recipe), tokenizer_(tokenizer), known_(known), render_(render) {}

EncodeOptions RowMaker::encode_options() const {
  EncodeOptions options;
  // A template writes its special tokens itself.
  options.add_special_tokens = recipe_.template_kind == RowTemplate::none;
  options.truncation = TruncationOptions{};
  options.padding = PaddingOptions{.length = 0};
  return options;
}

Result<RowBlock> RowMaker::make(const LineBlock& lines, const std::string& file_name) {
  RowBlock block;
  std::vector<Candidate> candidates;
  std::vector<Draft> drafts;
  LineCursor cursor(lines);
  while (const std::optional<Line> line = cursor.next()) {
    if (line->is_blank()) continue;
    block.lines += 1;
    if (line->is_too_long) {
      block.problems.note(file_name, line->number,
                          {LineProblem::too_long, std::to_string(line->byte_count) + " bytes"});
      continue;
    }
    Candidate candidate;
    Draft draft;
    std::string complaint;
    const LineVerdict verdict = read_line(line->text, candidate, draft, complaint);
    if (!verdict.ok()) {
      block.problems.note(file_name, line->number, verdict);
      if (verdict.problem == LineProblem::missing_field && block.missing_field_hint.empty())
        for (const std::string& name : parser_.field_names(line->text))
          block.missing_field_hint += (block.missing_field_hint.empty() ? "" : ", ") + name;
      continue;
    }
    if (!complaint.empty()) {
      block.problems.note(file_name, line->number, complaint);
      continue;
    }
    candidate.row.line = line->number;
    if (!known_.find(candidate.row.digest, candidate.ids, candidate.runs)) {
      candidate.row.is_new = true;
      draft.row = candidates.size();
      drafts.push_back(std::move(draft));
    }
    candidates.push_back(std::move(candidate));
  }

  if (recipe_.template_kind == RowTemplate::rendered) LMEMO_TRY(render(drafts, candidates));
  const auto start = std::chrono::steady_clock::now();
  LMEMO_TRY(encode(drafts, candidates));
  block.tokenise_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (Candidate& candidate : candidates) {
    if (candidate.row.is_new && candidate.problem.empty()) finish(candidate);
    if (!candidate.problem.empty()) {
      block.problems.note(file_name, candidate.row.line, candidate.problem);
      continue;
    }
    candidate.row.id_count = static_cast<uint32_t>(candidate.ids.size());
    candidate.row.run_count = static_cast<uint32_t>(candidate.runs.size());
    block.ids.insert(block.ids.end(), candidate.ids.begin(), candidate.ids.end());
    block.runs.insert(block.runs.end(), candidate.runs.begin(), candidate.runs.end());
    block.rows.push_back(candidate.row);
  }
  return block;
}

LineVerdict RowMaker::read_line(std::string_view line, Candidate& candidate, Draft& draft,
                                std::string& complaint) {
  if (recipe_.fields == RowFields::messages) return read_chat(line, candidate, draft, complaint);
  if (recipe_.fields == RowFields::prompt) return read_prompt(line, candidate, draft, complaint);
  std::string_view text;
  if (LineVerdict verdict = parser_.text(line, recipe_.first, text); !verdict.ok()) return verdict;
  if (text.empty()) complaint = "empty text";
  candidate.row.digest = digest_of_text(text);
  draft.text = text;
  return {};
}

LineVerdict RowMaker::read_prompt(std::string_view line, Candidate& candidate, Draft& draft,
                                  std::string& complaint) {
  std::string_view prompt, completion;
  if (LineVerdict verdict = parser_.texts(line, recipe_.first, recipe_.second, prompt, completion);
      !verdict.ok())
    return verdict;
  if (completion.empty()) complaint = "empty completion";
  candidate.row.digest = digest_of_parts({prompt, completion});
  if (recipe_.template_kind == RowTemplate::none) {
    draft.text.reserve(prompt.size() + completion.size());
    draft.text += prompt;
    draft.text += completion;
    if (recipe_.loss != RowLoss::all) draft.cuts = {prompt.size()};
    return {};
  }
  messages_ = {{"user", prompt}, {"assistant", completion}};
  if (recipe_.template_kind == RowTemplate::chatml) {
    write_chatml(draft);
    return {};
  }
  JsonWriter json;
  json.begin_object();
  json.begin_array("messages");
  for (const ChatMessage& message : messages_) {
    json.begin_object();
    json.member("role", message.role);
    json.member("content", message.content);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  draft.text = json.text();
  return {};
}

LineVerdict RowMaker::read_chat(std::string_view line, Candidate& candidate, Draft& draft,
                                std::string& complaint) {
  if (recipe_.template_kind == RowTemplate::rendered) {
    if (LineVerdict verdict = parser_.messages_json(line, recipe_.first, "tools", chat_json_); !verdict.ok())
      return verdict;
    if (chat_json_.starts_with("{\"messages\":[]")) complaint = "empty messages";
    candidate.row.digest = digest_of_text(chat_json_);
    draft.text = chat_json_;  // What becomes of it is up to the renderer.
    return {};
  }
  if (LineVerdict verdict = parser_.messages(line, recipe_.first, messages_); !verdict.ok()) return verdict;
  if (messages_.empty()) complaint = "empty messages";
  bool has_assistant = false;
  std::string all;
  for (const ChatMessage& message : messages_) {
    if (std::find(kChatmlRoles.begin(), kChatmlRoles.end(), message.role) == kChatmlRoles.end())
      return {LineProblem::wrong_role,
              "\"" + std::string(message.role) + "\", expected system, developer, user, assistant or tool"};
    has_assistant = has_assistant || message.role == "assistant";
    add_part(all, message.role);
    add_part(all, message.content);
  }
  if (recipe_.loss == RowLoss::assistant && !has_assistant && complaint.empty())
    complaint = "nothing to learn: no assistant";
  candidate.row.digest = digest_of_text(all);
  write_chatml(draft);
  return {};
}

// The assistant's words and the mark that ends them are learned; who speaks is not.
void RowMaker::write_chatml(Draft& draft) const {
  for (const ChatMessage& message : messages_) {
    const bool is_learned = recipe_.loss != RowLoss::all && message.role == "assistant";
    draft.text += "<|im_start|>";
    draft.text += message.role;
    draft.text += '\n';
    if (is_learned) draft.cuts.push_back(draft.text.size());
    draft.text += message.content;
    draft.text += "<|im_end|>";
    if (is_learned) draft.cuts.push_back(draft.text.size());
    draft.text += '\n';
  }
}

Status RowMaker::render(std::vector<Draft>& drafts, std::vector<Candidate>& candidates) {
  if (drafts.empty()) return {};
  std::vector<std::string> chats;
  for (Draft& draft : drafts) chats.push_back(std::move(draft.text));
  LMEMO_ASSIGN(std::vector<RenderedChat> rendered, render_(chats));
  if (rendered.size() != drafts.size())
    return Error{ErrorCode::incompatible, "the chat template gave " + std::to_string(rendered.size()) +
                                              " texts for " + std::to_string(drafts.size()) + " chats"};
  for (size_t i = 0; i < drafts.size(); ++i) {
    Candidate& candidate = candidates[drafts[i].row];
    RenderedChat& chat = rendered[i];
    drafts[i].text = std::move(chat.text);
    if (!chat.problem.empty()) {
      candidate.problem = "template: " + chat.problem;
      drafts[i].is_done = true;
      continue;
    }
    if (chat.has_ids) {
      drafts[i].is_done = true;
      candidate.ids = std::move(chat.ids);
      if (recipe_.loss == RowLoss::all) {
        candidate.runs = {0, static_cast<uint32_t>(candidate.ids.size())};
        continue;
      }
      bool is_learned = false;
      candidate.runs = {0};
      for (size_t at = 0; at < candidate.ids.size(); ++at) {
        const bool here = at < chat.learned_ids.size() && chat.learned_ids[at];
        if (here != is_learned) candidate.runs.push_back(0), is_learned = here;
        candidate.runs.back() += 1;
      }
      continue;
    }
    if (recipe_.loss == RowLoss::all) continue;
    for (const auto& [begin, end] : chat.learned) {
      const uint64_t last = drafts[i].cuts.empty() ? 0 : drafts[i].cuts.back();
      if (begin < last || end < begin || end > drafts[i].text.size())
        return Error{ErrorCode::incompatible, "the chat template gave spans that do not follow one another"};
      drafts[i].cuts.push_back(begin);
      drafts[i].cuts.push_back(end);
    }
    if (chat.learned.empty()) candidate.problem = "nothing to learn: no assistant";
  }
  return {};
}

Status RowMaker::encode(std::vector<Draft>& drafts, std::vector<Candidate>& candidates) {
  // The whole texts, and behind each that has cuts its parts.
  std::vector<std::string_view> texts;
  for (const Draft& draft : drafts) {
    if (draft.is_done) continue;
    texts.push_back(draft.text);
    if (draft.cuts.empty()) continue;
    uint64_t before = 0;
    for (const uint64_t cut : draft.cuts) {
      texts.push_back(std::string_view(draft.text).substr(before, cut - before));
      before = cut;
    }
    texts.push_back(std::string_view(draft.text).substr(before));
  }
  LMEMO_ASSIGN(const TokenBatch batch, tokenizer_.encode_batch(texts, encode_options(), 1));

  size_t next = 0;
  std::vector<const Draft*> unproven;
  for (Draft& draft : drafts) {
    if (draft.is_done) continue;
    Candidate& candidate = candidates[draft.row];
    const std::span<const uint32_t> whole = batch[next++];
    candidate.ids.assign(whole.begin(), whole.end());
    const uint32_t id_count = static_cast<uint32_t>(whole.size());
    if (draft.cuts.empty()) {
      candidate.runs = {0, id_count};
      continue;
    }
    std::vector<uint32_t> cuts;
    size_t at = 0;
    bool is_proven = true;
    for (size_t part = 0; part <= draft.cuts.size(); ++part) {
      const std::span<const uint32_t> ids = batch[next++];
      is_proven = is_proven && starts_with(whole.subspan(std::min(at, whole.size())), ids);
      at += ids.size();
      if (part < draft.cuts.size()) cuts.push_back(static_cast<uint32_t>(at));
    }
    if (is_proven && at == whole.size()) {
      candidate.runs = runs_of_cuts(cuts, id_count);
    } else {
      unproven.push_back(&draft);
    }
  }
  return find_cuts(unproven, candidates);
}

Status RowMaker::find_cuts(const std::vector<const Draft*>& drafts, std::vector<Candidate>& candidates) {
  std::vector<std::string_view> fronts;
  for (const Draft* draft : drafts)
    for (const uint64_t cut : draft->cuts) fronts.push_back(std::string_view(draft->text).substr(0, cut));
  if (fronts.empty()) return {};
  LMEMO_ASSIGN(const TokenBatch batch, tokenizer_.encode_batch(fronts, encode_options(), 1));
  size_t next = 0;
  for (const Draft* draft : drafts) {
    Candidate& candidate = candidates[draft->row];
    std::vector<uint32_t> cuts;
    for (size_t cut = 0; cut < draft->cuts.size(); ++cut) {
      const std::span<const uint32_t> front = batch[next++];
      if (!starts_with(candidate.ids, front)) candidate.problem = kInexact;
      cuts.push_back(static_cast<uint32_t>(front.size()));
    }
    if (!std::is_sorted(cuts.begin(), cuts.end())) candidate.problem = kInexact;
    if (candidate.problem.empty())
      candidate.runs = runs_of_cuts(cuts, static_cast<uint32_t>(candidate.ids.size()));
  }
  return {};
}

void RowMaker::finish(Candidate& candidate) const {
  if (candidate.ids.empty()) {
    candidate.problem = "empty text: no ids";
    return;
  }
  // The end is learned like what it ends.
  if (recipe_.eos_id && candidate.ids.back() != *recipe_.eos_id) {
    candidate.ids.push_back(*recipe_.eos_id);
    if (candidate.runs.size() % 2 == 1) candidate.runs.push_back(0);
    candidate.runs.back() += 1;
  }
}

}  // namespace lmemo::dataset
