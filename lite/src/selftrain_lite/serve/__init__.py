"""The server of an exported model: FastAPI and uvicorn over the predictor.

command.py   the options, checked before anything is loaded
server.py    a port, signals, slow clients
door.py      who may come in
app.py       the addresses
tei.py, kserve.py    two protocols: requests to texts, probabilities to answers
batcher.py   one model thread; the next batch fills while it is busy
"""
