// run_command_line(): the command line inside the extension, for the console script `lmemo`.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bindings.h"
#include "chat_renderer.h"
#include "cli/process_environment.h"
#include "errors.h"
#include "lmemo/version.h"
#include "python_tokenizer.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {
namespace {

volatile std::sig_atomic_t was_interrupted = 0;

// Ctrl-C or SIGTERM while the command runs: noted the first time, deadly the second. Python's own handler would wait for
// the interpreter, which is not running meanwhile. What was held back (lmemo_command) comes now.
class InterruptNote {
 public:
  InterruptNote() {
    was_interrupted = 0;
    struct sigaction action{};
    action.sa_handler = [](int) { was_interrupted = 1; };
    sigemptyset(&action.sa_mask);
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    for (size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
    }
    sigset_t noted;
    sigemptyset(&noted);
    for (const int number : kSignals) sigaddset(&noted, number);
    pthread_sigmask(SIG_UNBLOCK, &noted, &mask_before_);
  }
  ~InterruptNote() {
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  InterruptNote(const InterruptNote&) = delete;
  InterruptNote& operator=(const InterruptNote&) = delete;

 private:
  static constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};
  struct sigaction before_[2] = {};
  sigset_t mask_before_ = {};
};

// `make(path)` gives (name, traps, encode), and encode(texts) a list of ids for each of them: lmemo/_oracle.py.
Result<TokenOracle> oracle_of(nb::handle make, const std::filesystem::path& tokenizer) {
  return asked([&] {
    const nb::object made = make(path_to_python(tokenizer));
    TokenOracle oracle;
    oracle.name = nb::cast<std::string>(made[0]);
    for (const nb::handle trap : made[1]) oracle.traps.push_back(nb::cast<std::string>(trap));
    const nb::object encode = made[2];
    // Freed with the GIL, whoever lets go of it last.
    const std::shared_ptr<nb::object> kept(new nb::object(encode), [](nb::object* object) {
      const nb::gil_scoped_acquire with_gil;
      delete object;
    });
    oracle.encode = [kept](std::span<const std::string> texts) {
      return asked([&] {
        nb::list list;
        for (const std::string& text : texts) list.append(nb::str(text.data(), text.size()));
        return nb::cast<std::vector<std::vector<uint32_t>>>((*kept)(list));
      });
    };
    return oracle;
  });
}

int run(const std::vector<std::string>& arguments, const std::filesystem::path& package,
        const std::string& interpreter, nb::handle oracle, MakeChatRenderer renderer) {
  const InterruptNote interrupt_note;
  CliEnvironment environment = process_environment();
  environment.interrupted = [] { return was_interrupted != 0; };
  environment.version = kVersion;
  environment.shipped_examples = find_shipped_examples(package);
  environment.python = interpreter;
  environment.program = {interpreter, "-m", "lmemo"};
  if (!oracle.is_none())
    environment.token_oracle = [oracle](const std::filesystem::path& path) {
      return oracle_of(oracle, path);
    };
  environment.import_documents = [](const std::string& input, const std::string& folder,
                                    const std::string& text_field) {
    return asked([&] {
      const nb::object import_documents = nb::module_::import_("lmemo._import").attr("import_documents");
      return nb::cast<std::vector<std::string>>(import_documents(input, folder, text_field));
    });
  };
  environment.load_refused_tokenizer = [](const std::filesystem::path& file) {
    return asked([&] {
      return tokenizer_of_engine(
          nb::module_::import_("lmemo.tokenizer").attr("_engine_of_file")(path_to_python(file)));
    });
  };
  environment.make_chat_renderer = std::move(renderer);
  environment.foreign_engine = huggingface_version;
  environment.fetch_model = fetch_from_hub;
  const int exit_code = run_cli(arguments, environment);
  const int output_error = finish_output();
  if (output_error == 0) return exit_code;
  std::fprintf(stderr, "error: io_error: cannot write to standard output: %s\n", std::strerror(output_error));
  return exit_code == kExitFine ? static_cast<int>(kExitFailed) : exit_code;
}

int run_command_line(const nb::iterable& arguments, nb::handle package, nb::handle oracle,
                     nb::handle renderer) {
  std::vector<std::string> words;
  for (const nb::handle argument : arguments) words.push_back(path_of(argument).string());
  const std::filesystem::path start = path_of(package);
  MakeChatRenderer make_renderer;
  if (!renderer.is_none()) make_renderer = chat_renderer_of(nb::borrow(renderer));
  // None where Python is embedded.
  const nb::object executable = nb::module_::import_("sys").attr("executable");
  const std::string interpreter = executable.is_none() ? "" : nb::cast<std::string>(executable);
  const nb::gil_scoped_release without_gil;
  return run(words, start, interpreter, oracle, std::move(make_renderer));
}

}  // namespace

void init_command_line(nb::module_& m) {
  m.def("run_command_line", &run_command_line, "arguments"_a, "package"_a, "oracle"_a.none() = nb::none(),
        "chat_renderer"_a.none() = nb::none(),
        nb::sig("def run_command_line(arguments: Iterable[str], package: str | os.PathLike[str], oracle: "
                "Callable[[pathlib.Path], tuple[str, list[str], Callable[[list[str]], list[list[int]]]]] | "
                "None = None, chat_renderer: Any = None) "
                "-> int"),
        "Runs one command of `lmemo` and returns its exit code. Writes to the standard streams of the "
        "process, past "
        "sys.stdout and sys.stderr: flush these before.");
}

}  // namespace lmemo::python
