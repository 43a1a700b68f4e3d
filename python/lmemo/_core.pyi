"""The compiled part of lmemo."""



version: str = '0.1.0'
