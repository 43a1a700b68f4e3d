// Keeps one value in the store named by the first argument, and counts how often it had to be computed.
#include <lmemo/chunks.h>
#include <lmemo/forward.h>
#include <lmemo/store.h>
#include <lmemo/tokenizer.h>
#include <lmemo/version.h>

#include <cstdio>
#include <string>

int main(int, char** arguments) {
  auto store = lmemo::open_store(arguments[1]);
  const auto key = lmemo::Key::of("consumer", {{"question", "6 x 7"}});
  if (!store.ok() || !key.ok()) return 1;
  const bool is_hit = (*store)->find(key->digest()).has_value();
  if (!is_hit && !((*store)->put(*key, lmemo::bytes_of("42")).ok() && (*store)->flush().ok())) return 1;
  const auto tokenizer = lmemo::Tokenizer::load("no such file");  // The other rooms are in the archive too.
  std::printf("lmemo %s: %s, %s\n", std::string(lmemo::kVersion).c_str(), is_hit ? "found" : "computed",
              tokenizer.ok() ? "a tokenizer" : "no tokenizer");
}
