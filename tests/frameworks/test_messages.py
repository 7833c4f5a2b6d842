"""The forms of OpenAI and Anthropic with their real clients; a transport plays the server."""

from __future__ import annotations

import json
from typing import Any

import httpx2
from anthropic import AsyncAnthropic
from anthropic.types import ToolParam
from openai import AsyncOpenAI
from openai.types.responses.response_input_item_param import FunctionCallOutput
from pydantic import TypeAdapter

from crux_workspace import Workspace
from tests.conftest import MakeWorkspace
from tests.support.report_task import ANSWER, ReportTask


def openai_over(task: ReportTask) -> AsyncOpenAI:
    async def serve(request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        assert [tool["type"] for tool in body["tools"]] == ["function"] * 7
        messages = body["messages"]
        told = messages[-1]["content"] if messages[-1]["role"] == "tool" else None
        call = await task.following(told)
        message: dict[str, Any] = {"role": "assistant", "content": ANSWER if call is None else None}
        if call is not None:
            function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
            message["tool_calls"] = [
                {"id": f"call_{task.turn}", "type": "function", "function": function}
            ]
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "stop" if call is None else "tool_calls",
        }
        return httpx2.Response(
            200,
            json={
                "id": "c",
                "object": "chat.completion",
                "created": 0,
                "model": "m",
                "choices": [choice],
            },
        )

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(serve))
    return AsyncOpenAI(api_key="none", base_url="http://model.test/v1", http_client=http)


async def test_openai_chat_completions(make_ws: MakeWorkspace) -> None:
    task = ReportTask.on(make_ws)
    tools = task.tools().to("openai")
    messages: list[Any] = [{"role": "user", "content": "Report on tides."}]
    async with openai_over(task) as client:
        for _ in range(20):
            answer = await client.chat.completions.create(model="m", messages=messages, tools=tools)
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            following = await tools.answer(message)
            if not following:
                break
            messages += following
    assert message.content == ANSWER
    await task.check()


async def test_openai_responses(make_ws: MakeWorkspace) -> None:
    task = ReportTask.on(make_ws)

    async def serve(request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        assert {tool["name"] for tool in body["tools"]} == set(task.tools().names)
        last = body["input"][-1]
        call = await task.following(last.get("output"))
        item: dict[str, Any]
        if call is None:
            text = {"type": "output_text", "text": ANSWER, "annotations": []}
            item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}  # fmt: skip
        else:
            item = {
                "type": "function_call",
                "id": f"f{task.turn}",
                "call_id": f"call_{task.turn}",
                "name": call.tool,
                "arguments": json.dumps(call.arguments),
                "status": "completed",
            }
        return httpx2.Response(
            200,
            json={
                "id": "r", "object": "response", "created_at": 0, "model": "m", "output": [item],
                "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "completed",
            },
        )  # fmt: skip

    tools = task.tools().to("openai")
    history: list[Any] = [{"role": "user", "content": "Report on tides."}]
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(serve))
    async with AsyncOpenAI(
        api_key="none", base_url="http://model.test/v1", http_client=http
    ) as client:
        for _ in range(20):
            response = await client.responses.create(
                model="m", input=history, tools=tools.for_responses()
            )
            history += [item.model_dump(exclude_none=True) for item in response.output]
            following = await tools.answer_response(response)
            if not following:
                break
            history += following
    assert response.output_text == ANSWER
    await task.check()


async def test_anthropic_messages(make_ws: MakeWorkspace) -> None:
    task = ReportTask.on(make_ws)
    failed: list[bool] = []

    async def serve(request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        content = body["messages"][-1]["content"]
        told = None
        if isinstance(content, list):
            [block] = content
            assert block["tool_use_id"] == f"toolu_{task.turn}"
            failed.append(block["is_error"])
            told = block["content"]
        call = await task.following(told)
        blocks: list[dict[str, Any]] = [{"type": "text", "text": ANSWER}]
        if call is not None:
            blocks = [{"type": "tool_use", "id": f"toolu_{task.turn}", "name": call.tool, "input": call.arguments}]  # fmt: skip
        return httpx2.Response(
            200,
            json={
                "id": "m", "type": "message", "role": "assistant", "model": "m", "content": blocks,
                "stop_reason": "end_turn" if call is None else "tool_use", "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        )  # fmt: skip

    tools = task.tools().to("anthropic")
    TypeAdapter(list[ToolParam]).validate_python(list(tools))
    messages: list[Any] = [{"role": "user", "content": "Report on tides."}]
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(serve))
    async with AsyncAnthropic(
        api_key="none", base_url="http://model.test", http_client=http
    ) as client:
        for _ in range(20):
            message = await client.messages.create(
                model="m", max_tokens=100, messages=messages, tools=list(tools)
            )
            messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in message.content]})  # fmt: skip
            following = await tools.answer(message)
            if following is None:
                break
            messages.append(following)
    assert message.content[0].type == "text"
    assert failed == [False, True, False, True, False, True, False, False, False, False]
    await task.check()


async def test_images_are_shown(ws: Workspace) -> None:
    await ws.write("/workspace/i.png", b"\x89PNG")
    tools = ws.as_tools()
    function = {"name": "readWorkspaceFile", "arguments": '{"path": "/workspace/i.png"}'}
    answers = await tools.to("openai").answer({"tool_calls": [{"id": "c", "function": function}]})
    assert [answer["role"] for answer in answers] == ["tool", "user"]
    assert answers[1]["content"][0]["image_url"]["url"] == "data:image/png;base64,iVBORw=="
    item = {"type": "function_call", "call_id": "f", **function}
    [answer] = await tools.to("openai").answer_response({"output": [item]})
    TypeAdapter(FunctionCallOutput).validate_python(answer)
    assert answer["output"][1]["image_url"] == "data:image/png;base64,iVBORw=="
    used = {"type": "tool_use", "id": "t", "name": "readWorkspaceFile", "input": {"path": "/workspace/i.png"}}  # fmt: skip
    message = await tools.to("anthropic").answer({"content": [used]})
    assert message["content"][0]["content"][1]["source"]["media_type"] == "image/png"


async def test_several_calls_of_one_message_are_answered_in_order(ws: Workspace) -> None:
    calls = [
        {"id": f"c{n}", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(
            [
                ("writeWorkspaceFile", '{"path": "/workspace/a", "content": "x"}'),
                ("noSuchTool", "{}"),
                ("readWorkspaceFile", "{broken"),
                ("readWorkspaceFile", '{"path": "/workspace/a"}'),
            ]
        )
    ]
    answers = await ws.as_tools().to("openai").answer({"tool_calls": calls})
    assert [answer["tool_call_id"] for answer in answers] == ["c0", "c1", "c2", "c3"]
    assert "There is no tool" in answers[1]["content"]
    assert "no valid JSON" in answers[2]["content"]
    assert json.loads(answers[3]["content"])["value"] == "x"
    assert await ws.as_tools().to("openai").answer({"content": "done"}) == []
    assert await ws.as_tools().to("anthropic").answer({"content": []}) is None
