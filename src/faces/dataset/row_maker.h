// Lines to rows of ids: the work of one worker on one block. Depends on nothing but the lines and the recipe, so blocks
// can be done in any order by anybody.
#pragma once

#include <string>
#include <vector>

#include "faces/dataset/known_rows.h"
#include "faces/dataset/row_recipe.h"

namespace lmemo::dataset {

struct MadeRow {
  Digest digest;  // Of the row's content.
  uint64_t line = 0;
  uint32_t id_count = 0;
  uint32_t run_count = 0;
  bool is_new = false;  // Not from the store.
};

// The rows of a block in the order of its lines, ids and runs one behind the other.
struct RowBlock {
  std::vector<MadeRow> rows;
  std::vector<uint32_t> ids;
  std::vector<uint32_t> runs;
  LineProblems problems;
  uint64_t lines = 0;  // Not blank.
  double tokenise_seconds = 0;
  std::string missing_field_hint;  // The fields that a line without ours has.
};

class RowMaker {
 public:
  // All of these outlive it. `render` may be empty if the recipe needs none.
  RowMaker(const RowRecipe& recipe, const Tokenizer& tokenizer, const KnownRows& known,
           const RenderChats& render);

  // An error is none of the lines': the tokenizer or the renderer failed.
  Result<RowBlock> make(const LineBlock& lines, const std::string& file_name);

 private:
  // A row that is not in the store, on its way.
  struct Draft {
    size_t row = 0;    // In candidates_.
    std::string text;  // The whole.
    std::vector<uint64_t>
        cuts;  // Where learned and not learned meet, ascending; the first part is not learned.
    bool is_done = false;
  };
  struct Candidate {
    MadeRow row;
    std::vector<uint32_t> ids, runs;
    std::string problem;  // Not empty: it became no row.
  };

  LineVerdict read_line(std::string_view line, Candidate& candidate, Draft& draft, std::string& complaint);
  LineVerdict read_chat(std::string_view line, Candidate& candidate, Draft& draft, std::string& complaint);
  LineVerdict read_prompt(std::string_view line, Candidate& candidate, Draft& draft, std::string& complaint);
  void write_chatml(Draft& draft) const;
  Status render(std::vector<Draft>& drafts, std::vector<Candidate>& candidates);
  Status encode(std::vector<Draft>& drafts, std::vector<Candidate>& candidates);
  Status find_cuts(const std::vector<const Draft*>& drafts, std::vector<Candidate>& candidates);
  void finish(Candidate& candidate) const;
  EncodeOptions encode_options() const;

  const RowRecipe& recipe_;
  const Tokenizer& tokenizer_;
  const KnownRows& known_;
  const RenderChats& render_;
  JsonLineParser parser_;
  std::vector<ChatMessage> messages_;
  std::string chat_json_;
};

}  // namespace lmemo::dataset
