#include "chat_renderer.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "errors.h"
#include "values.h"

namespace nb = nanobind;

namespace lmemo::python {
namespace {

// Freed with the GIL, whoever lets go of it last.
std::shared_ptr<nb::object> kept(nb::object object) {
  return {new nb::object(std::move(object)), [](nb::object* owned) {
            const nb::gil_scoped_acquire with_gil;
            delete owned;
          }};
}

RenderedChat chat_of(nb::handle made) {
  RenderedChat chat;
  chat.text = nb::cast<std::string>(made[0]);
  chat.learned = nb::cast<std::vector<std::pair<uint64_t, uint64_t>>>(made[1]);
  chat.has_ids = !made[2].is_none();
  if (chat.has_ids) {
    chat.ids = nb::cast<std::vector<uint32_t>>(made[2]);
    chat.learned_ids = nb::cast<std::vector<bool>>(made[3]);
  }
  chat.problem = nb::cast<std::string>(made[4]);
  return chat;
}

}  // namespace

MakeChatRenderer chat_renderer_of(nb::object make) {
  return
      [make = kept(std::move(make))](const std::filesystem::path& tokenizer, const std::string& template_text,
                                     bool wants_learned) -> Result<RenderChats> {
        return asked([&]() -> RenderChats {
          const auto render = kept((*make)(
              path_to_python(tokenizer), nb::str(template_text.data(), template_text.size()), wants_learned));
          return [render](std::span<const std::string> chats) {
            return asked([&] {
              nb::list list;
              for (const std::string& chat : chats) list.append(nb::str(chat.data(), chat.size()));
              const nb::object made = (*render)(list);
              std::vector<RenderedChat> rendered;
              for (const nb::handle one : made) rendered.push_back(chat_of(one));
              return rendered;
            });
          };
        });
      };
}

}  // namespace lmemo::python
