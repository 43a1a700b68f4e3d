make_store s
export LMEMO_STORE=s
run explain tokens section:int=1 tokenizer=gpt2 lower:bool=false
run explain tokens section:int=1 tokenizer=gpt3 lower:bool=false
run explain tokens section:int=1 tokenizer=gpt2
run explain tokens section:float=1 tokenizer=gpt2 lower:bool=false extra:bytes=00ff
run explain tokens section:int=1 tokenizer=gpt3 lower:bool=false --json
run explain tokens section:int=1 tokenizer=gpt2 lower:bool=false --quiet
run explain nothing a:none=
