"""What the README of OpenAI's client for Python shows, with an agent as the model. Prints what it got, as JSON."""

import json
import os
import sys

import openai
from openai import OpenAI

client = OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["KEY"], max_retries=0)
AGENT = os.environ["AGENT"]
WEATHER = json.loads(os.environ["WEATHER"])
PERSON = json.loads(os.environ["PERSON"])
got = {}

got["models"] = [model.id for model in client.models.list()]

completion = client.chat.completions.create(
    model=AGENT,
    messages=[
        {"role": "developer", "content": "Talk like a pirate."},
        {"role": "user", "content": "How do I check if a Python object is an instance of a class?"},
    ],
)
got["chat"] = completion.choices[0].message.content

stream = client.chat.completions.create(
    model=AGENT,
    messages=[{"role": "user", "content": "Say this is a test"}],
    stream=True,
)
got["chat_stream"] = "".join(chunk.choices[0].delta.content or "" for chunk in stream)

response = client.responses.create(
    model=AGENT,
    instructions="You are a coding assistant that talks like a pirate.",
    input="How do I check if a Python object is an instance of a class?",
)
got["response"] = response.output_text

stream = client.responses.create(model=AGENT, input="Write a one-sentence story.", stream=True)
got["response_events"] = [event.type for event in stream]

second = client.responses.create(model=AGENT, input="And again?", previous_response_id=response.id)
got["continued"] = second.output_text

messages = [{"role": "user", "content": "call a function"}]
tools = [{"type": "function", "function": WEATHER}]
called = client.chat.completions.create(model=AGENT, messages=messages, tools=tools).choices[0].message
call = called.tool_calls[0]
got["call"] = [call.function.name, json.loads(call.function.arguments)]
messages += [called, {"role": "tool", "tool_call_id": call.id, "content": "22 degrees"}]
got["after_call"] = client.chat.completions.create(model=AGENT, messages=messages, tools=tools).choices[0].message.content

form = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
structured = client.chat.completions.create(
    model=AGENT, messages=[{"role": "user", "content": "answer in JSON"}], response_format=form
)
got["structured"] = json.loads(structured.choices[0].message.content)

embedded = client.embeddings.create(model="local:all-minilm-l6-v2", input=["one text", "another"])
got["embeddings"] = [len(one.embedding) for one in embedded.data]


def failure(ask):
    try:
        ask()
    except openai.APIStatusError as error:
        return [type(error).__name__, error.status_code, error.code, error.param]
    return None


user = [{"role": "user", "content": "hi"}]
wrong = OpenAI(base_url=os.environ["BASE_URL"], api_key="wrong", max_retries=0)
got["errors"] = [
    failure(lambda: wrong.models.list()),
    failure(lambda: client.chat.completions.create(model="gpt-5", messages=user)),
    failure(lambda: client.chat.completions.create(model=AGENT, messages=user, n=2)),
    failure(lambda: client.chat.completions.create(model=os.environ["STOPPED"], messages=user)),
]


def limited():
    while True:
        found = failure(lambda: wrong.models.list())
        if found and found[0] == "RateLimitError":
            return found


got["errors"].append(limited())
json.dump(got, sys.stdout)
