# A source tree through sync, show, metrics, prune and clear, as people read it.
mkdir -p model tree/sub
cat > model/tokenizer.json <<'JSON'
{"version": "1.0", "truncation": null, "padding": null, "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
 "added_tokens": [{"id": 5, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "\n": 3, "ab": 4, "<s>": 5}, "merges": ["a b"]}}
JSON
echo '{"eos_token": "<s>"}' > model/tokenizer_config.json
mkdir plain && cp model/tokenizer.json plain
echo ab > tree/one.txt
echo abcabc > tree/sub/two.txt
echo aabb > tree/sub/three.txt
printf 'a\0b' > tree/binary
printf 'ab\377' > tree/latin
echo abc > tree/poetry.lock
cat > doc.dlm <<'DLM'
---
dlm_id: 01KPQ1FF
training:
  sequence_len: 4
  sources: [{path: tree, exclude: ["**/three.txt"]}]
---
::instruction::
not cached
DLM
export LMEMO_STORE=s
# What differs from run to run.
steady() {
  sed -E 's/\b[0-9A-HJKMNP-TV-Z]{26}\b/RUN/g; s/in [0-9.]+ (µs|ms|s), saved [0-9.]+ (µs|ms|s)/in SECONDS, saved SECONDS/; s/RUN, [0-9.]+ .*/RUN, SECONDS/;
    s/[0-9a-f]{64}/IDENTITY/g; s/("[a-z_]*seconds": )[0-9.e-]+/\1SECONDS/; s/("files_read": )[0-9]+/\1COUNT/; s/[0-9.]+ (µs|ms|s)(  |$)/SECONDS\2/; s/,[0-9]+[.][0-9]{6},/,SECONDS,/'
}
run sections show
run sections sync tree -t model --eos | steady
run sections sync tree -t model --sequence-len 3 | steady
run sections sync doc.dlm -t model | steady
run sections sync doc.dlm -t model --json | steady
run sections sync tree -t model --no-cache --json | steady
run sections sync tree -t plain --eos
run sections sync tree -t model --eos --no-eos
run sections sync tree -t model --include '*.py'  | steady
run sections sync nowhere -t model
run sections show | steady
run sections show doc.dlm | steady
run sections show doc.dlm --json | steady
run metrics --limit 2 | steady
run metrics --limit 1 --json | steady
run metrics --csv --since 1h | steady
run metrics --since 0s
echo abcc > tree/one.txt
run sections sync tree -t model | steady
run sections show | steady
run sections prune doc.dlm --dry-run
run sections prune --older-than 0s --dry-run
run sections clear doc.dlm --dry-run
run sections clear doc.dlm
run sections clear doc.dlm --force
run sections clear --yes
run sections show | steady
