#include "faces/tokenizer_canary.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <string>

#include "base/file_system.h"
#include "base/sha256.h"

namespace lmemo {
namespace {

constexpr std::string_view kSuffix = ".canary";

// What tokenizers differ in: case, digits, spaces, contractions, code, marks, scripts, emoji, special tokens. Changing it makes every store
// forget what it saw: give the suffix another name then.
constexpr std::string_view kProbe =
    "The quick brown fox doesn't jump over 1234567.89 lazy dogs; THEY'LL e-mail CamelCaseHTTPServer\t\n\n   "
    "def f(x: int) -> str:\r\n"
    "        return f\"{x!r:>10}\"  # ok\n  <s> </s> <|endoftext|> [UNK] ▁Ġ ##ing e\u0301 ﬁ Straße İI ½ ٣٤٥ "
    "\u00a0\u3000\u200d\n"
    "Съешь ещё мягких булок. 我们的目标是:2024年! 日本語のテキスト 한국어 हिन्दी العربية ไทย "
    "👩‍👩‍👧 "
    "🇩🇪 "
    "\x7f ";

std::filesystem::path folder_of(const std::filesystem::path& store_directory) {
  return store_directory / "tokenizers";
}

Result<std::string> probe_digest(const Tokenizer& tokenizer) {
  EncodeOptions options;
  options.truncation = TruncationOptions{};
  options.padding = PaddingOptions{.length = 0};
  LMEMO_ASSIGN(const std::vector<uint32_t> ids, tokenizer.encode(kProbe, options));
  return sha256(std::as_bytes(std::span(ids))).hex();
}

Status write_whole(const std::filesystem::path& file, std::string_view text) {
  static std::atomic<uint64_t> drafts{0};
  FileSystem& files = real_file_system();
  const std::filesystem::path draft =
      file.string() + "." + std::to_string(::getpid()) + "-" + std::to_string(++drafts) + ".draft";
  LMEMO_TRY(files.remove(draft));  // Left by a dead process that had our number.
  LMEMO_ASSIGN(std::unique_ptr<WritableFile> out, files.create(draft));
  const std::array<Bytes, 1> parts = {bytes_of(text)};
  Status status = out->append(parts);
  out.reset();
  if (status.ok()) status = files.rename(draft, file);
  if (!status.ok()) (void)files.remove(draft);
  return status;
}

}  // namespace

Status check_canary(const std::filesystem::path& store_directory, const Tokenizer& tokenizer,
                    const Digest& identity) {
  const Result<std::string> probe = probe_digest(tokenizer);
  if (!probe.ok()) return {};  // A vocabulary that has no token for some of it. Its sections will tell.
  const std::string& found = *probe;
  const std::filesystem::path file = folder_of(store_directory) / (identity.hex() + std::string(kSuffix));
  const auto mapped = real_file_system().map(file);
  const std::string expected = mapped.ok() && *mapped ? std::string(text_of((*mapped)->bytes())) : "";
  if (expected == found) return {};
  if (const Result<std::string> again = probe_digest(tokenizer); again.ok() && *again != found)
    return Error{ErrorCode::incompatible, "tokenizer " + identity.hex().substr(0, 12) +
                                              ": gives other ids each time (a dropout?), so what it gives "
                                              "cannot be stored; go on without the cache"};
  if (Digest::from_hex(expected))
    return Error{ErrorCode::incompatible, "tokenizer " + identity.hex().substr(0, 12) + ", probe text: ids " +
                                              found.substr(0, 12) + ", expected " + expected.substr(0, 12) +
                                              " as " + file.string() +
                                              " has them: it no longer gives the ids that are stored under "
                                              "its identity; go back to the version that made "
                                              "them, or use another store"};
  // First met here, or the file is damaged.
  (void)real_file_system().make_directory(folder_of(store_directory));
  (void)write_whole(file, found);
  return {};
}

void forget_canaries(const std::filesystem::path& store_directory) {
  std::error_code error, ignored;
  for (const auto& file : std::filesystem::directory_iterator(folder_of(store_directory), error))
    if (file.path().extension() == kSuffix) std::filesystem::remove(file.path(), ignored);
}

}  // namespace lmemo
