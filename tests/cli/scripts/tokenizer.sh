mkdir model
cat > model/tokenizer.json <<'JSON'
{"version": "1.0",
 "added_tokens": [{"id": 3, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
 "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]},
 "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Removed", "invert": false},
 "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
   "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
   "special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}}},
 "decoder": null,
 "truncation": {"direction": "Right", "max_length": 6, "strategy": "LongestFirst", "stride": 0},
 "padding": null,
 "model": {"type": "BPE", "unk_token": "u", "vocab": {"u": 0, "a": 1, "b": 2, "<s>": 3, "ab": 4}, "merges": ["a b"]}}
JSON
echo '{"eos_token": "<s>", "chat_template": "{{ messages }}"}' > model/tokenizer_config.json
echo "AB a x b a a a a" > one.txt
printf 'ab\033[31m' > two.txt
printf 'ab\377' > bytes.bin

# Which engine runs a file is not the point here.
any_engine() { sed -E 's/^(  engine ).*/\1 ANY/; s/("engine": ).*/\1ANY,/'; }
run tokenizer show model/tokenizer.json | any_engine
run tokenizer show model | any_engine
run tokenizer show model --json | any_engine
run tokenizer show model --quiet
run tokenizer show nowhere
run tokenizer show one.txt

run tokenize one.txt --tokenizer model
run tokenize one.txt two.txt -t model --ids
run tokenize one.txt two.txt -t model --count
run tokenize one.txt two.txt -t model
run tokenize two.txt -t model --no-special-tokens --json
run tokenize one.txt two.txt -t model --count --quiet
run tokenize bytes.bin -t model
run tokenize none.txt -t model
run tokenize one.txt
run tokenize -t model
run tokenize one.txt -t one.txt --pattern cl100k
run tokenizer frobnicate

echo '$ echo a b | lmemo tokenize - -t model --ids'
echo a b | lmemo tokenize - -t model --ids
