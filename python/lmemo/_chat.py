"""Chats to text by transformers' own templates, with the exact places of what the assistant says."""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    # Text, learned spans in bytes, ids and learned flags instead of both (or None), and what is wrong (or nothing).
    Rendered = tuple[str, list[tuple[int, int]], list[int] | None, list[bool] | None, str]


def chat_renderer(path: Path, template: str, wants_learned: bool) -> Callable[[list[str]], list[Rendered]]:
    """A function that renders chats, each the JSON of {"messages": [...], "tools": [...]}."""
    try:
        import transformers
    except ImportError:
        raise ImportError("chat templates are rendered by transformers: pip install transformers jinja2") from None

    tokenizer: Any
    if path.is_dir():
        tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(path, local_files_only=True)
    else:
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path))
    marks_generation = re.search(r"\{%-?\s*generation\s*-?%\}", template) is not None

    def text_of(messages: list[Any], tools: Any, prompt: bool = False) -> str:
        rendered: str = tokenizer.apply_chat_template(
            messages, tools=tools, chat_template=template, tokenize=False, add_generation_prompt=prompt
        )
        return rendered

    def with_mask(messages: list[Any], tools: Any) -> Rendered:
        """The template itself marks what the assistant says; transformers maps that to tokens."""
        encoded = tokenizer.apply_chat_template(
            messages, tools=tools, chat_template=template, tokenize=True, return_dict=True, return_assistant_tokens_mask=True
        )
        mask = [bool(learned) for learned in encoded["assistant_masks"]]
        if not any(mask):
            return "", [], None, None, "nothing to learn: no assistant"
        return "", [], list(encoded["input_ids"]), mask, ""

    def with_spans(messages: list[Any], tools: Any) -> Rendered:
        """What a turn adds to the prompt for it, checked to be the same in the whole chat."""
        whole = text_of(messages, tools)
        spans = []
        for index, message in enumerate(messages):
            if message.get("role") != "assistant":
                continue
            before = text_of(messages[:index], tools, prompt=True)
            after = whole if index == len(messages) - 1 else text_of(messages[: index + 1], tools)
            if not whole.startswith(after) or not after.startswith(before):
                return "", [], None, None, "inexact mask: this template writes a turn otherwise when others follow it"
            spans.append((len(before.encode()), len(after.encode())))
        return whole, spans, None, None, ""

    def render(chat: str) -> Rendered:
        value = json.loads(chat)
        messages, tools = value["messages"], value.get("tools")
        try:
            if not wants_learned:
                return text_of(messages, tools), [], None, None, ""
            return with_mask(messages, tools) if marks_generation else with_spans(messages, tools)
        except Exception as error:  # Whatever a template does with a chat that it does not expect.
            return "", [], None, None, f"{type(error).__name__}: {error}".split("\n")[0][:200]

    return lambda chats: [render(chat) for chat in chats]
