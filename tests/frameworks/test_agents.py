"""LangChain, pydantic-ai and the OpenAI Agents SDK: their real agent loops, with a script for a model."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelMessage, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.messages import ModelResponse as PydanticResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

from crux_workspace import Workspace
from crux_workspace.errors import ErrorCode, InvalidInputError, StateError, UnsupportedError
from crux_workspace.tools.forms import FORMS
from tests.conftest import MakeWorkspace
from tests.support.report_task import ANSWER, ReportTask

TASK = "Report on tides."


# -- LangChain


class ScriptedChat(BaseChatModel):
    """Plays a script; the agent binds its tools to it."""

    task: Any
    bound: Any = None
    loop: Any = None
    """Where the script is played for an agent that waits."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return self.model_copy(update={"bound": [tool.name for tool in tools]})

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        work = self._agenerate(messages)
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **options: Any
    ) -> ChatResult:
        last = messages[-1]
        told = last.text if isinstance(last, ToolMessage) else None
        call = await self.task.following(told)
        message = AIMessage(ANSWER)
        if call is not None:
            assert call.tool in self.bound
            made = {"name": call.tool, "args": call.arguments, "id": f"call_{self.task.turn}"}
            message = AIMessage("", tool_calls=[made])
        return ChatResult(generations=[ChatGeneration(message=message)])


async def test_langchain(make_ws: MakeWorkspace) -> None:
    task = ReportTask.on(make_ws)
    agent = create_agent(ScriptedChat(task=task), tools=task.tools().to("langchain"))
    state = await agent.ainvoke({"messages": [HumanMessage(TASK)]}, {"recursion_limit": 60})
    assert state["messages"][-1].content == ANSWER
    artifacts = [message.artifact for message in state["messages"] if isinstance(message, ToolMessage)]  # fmt: skip
    assert [result.ok for result in artifacts] == [True, False, True, False, True, False, True, True, True, True]  # fmt: skip
    await task.check()


async def test_langchain_tools_are_invoked_either_way(ws: Workspace) -> None:
    write = next(t for t in ws.as_tools().to("langchain") if t.name == "writeWorkspaceFile")
    arguments = {"path": "/workspace/a.md", "content": "one"}
    assert json.loads(await write.ainvoke(arguments))["version"] == 1
    assert json.loads(await asyncio.to_thread(write.invoke, arguments))["version"] == 2
    with pytest.raises(StateError) as caught:
        write.invoke(arguments)
    assert caught.value.code == ErrorCode.WRONG_THREAD
    assert len(await ws.history("/workspace/a.md")) == 2


async def test_langchain_tools_made_before_any_loop(ws: Workspace) -> None:
    made = await asyncio.to_thread(lambda: ws.as_tools().to("langchain"))
    write = next(t for t in made if t.name == "writeWorkspaceFile")
    arguments = {"path": "/workspace/a.md", "content": "one"}
    with pytest.raises(StateError) as caught:
        await asyncio.to_thread(write.invoke, arguments)
    assert caught.value.code == ErrorCode.WRONG_LOOP
    await write.ainvoke(arguments)
    assert json.loads(await asyncio.to_thread(write.invoke, arguments))["version"] == 2


async def test_a_langchain_agent_in_another_thread(make_ws: MakeWorkspace) -> None:
    task = ReportTask.on(make_ws)
    model = ScriptedChat(task=task, loop=asyncio.get_running_loop())
    agent = create_agent(model, tools=task.tools().to("langchain"))
    asked: Any = {"messages": [HumanMessage(TASK)]}
    state = await asyncio.to_thread(lambda: agent.invoke(asked, {"recursion_limit": 60}))
    assert state["messages"][-1].content == ANSWER
    await task.check()


async def test_langchain_images(ws: Workspace) -> None:
    await ws.write("/workspace/i.png", b"\x89PNG")
    tool = next(t for t in ws.as_tools().to("langchain") if t.name == "readWorkspaceFile")
    made = {"type": "tool_call", "id": "1", "name": tool.name, "args": {"path": "/workspace/i.png"}}
    message = await tool.ainvoke(made)
    assert message.content[1] == {"type": "image", "base64": "iVBORw==", "mime_type": "image/png"}


# -- pydantic-ai


async def test_pydantic_ai(make_ws: MakeWorkspace) -> None:
    task = ReportTask.on(make_ws)

    async def model(messages: list[ModelMessage], info: AgentInfo) -> PydanticResponse:
        assert {tool.name for tool in info.function_tools} == set(task.tools().names)
        last = messages[-1].parts[-1]
        told = json.dumps(last.content) if isinstance(last, ToolReturnPart) else None
        call = await task.following(told)
        if call is None:
            return PydanticResponse([TextPart(ANSWER)])
        return PydanticResponse([ToolCallPart(call.tool, call.arguments)])

    agent = PydanticAgent(FunctionModel(model), tools=task.tools().to("pydantic-ai"))
    run = await agent.run(TASK)
    assert run.output == ANSWER
    await task.check()


async def test_pydantic_ai_images(ws: Workspace) -> None:
    await ws.write("/workspace/i.png", b"\x89PNG")
    seen: list[Any] = []

    async def model(messages: list[ModelMessage], info: AgentInfo) -> PydanticResponse:
        if len(messages) == 1:
            return PydanticResponse(
                [ToolCallPart("readWorkspaceFile", {"path": "/workspace/i.png"})]
            )
        seen.extend(messages[-1].parts)
        return PydanticResponse([TextPart("seen")])

    await PydanticAgent(FunctionModel(model), tools=ws.as_tools().to("pydantic-ai")).run("look")
    shown = [item for part in seen for item in _items(part) if hasattr(item, "media_type")]
    assert [(item.media_type, item.data) for item in shown] == [("image/png", b"\x89PNG")]


def _items(part: Any) -> list[Any]:
    return part.content if isinstance(part.content, list) else [part.content]


# -- OpenAI Agents SDK


class ScriptedModel(Model):
    """Plays a script."""

    def __init__(self, task: ReportTask) -> None:
        self.task = task

    async def get_response(
        self, system_instructions: Any, input: Any, *args: Any, **options: Any
    ) -> ModelResponse:
        last = input[-1] if isinstance(input, list) else {}
        told = last.get("output")
        call = await self.task.following(told)
        item: Any
        if call is None:
            text = ResponseOutputText(type="output_text", text=ANSWER, annotations=[])
            item = ResponseOutputMessage(
                id="m", type="message", role="assistant", status="completed", content=[text]
            )
        else:
            item = ResponseFunctionToolCall(
                type="function_call",
                call_id=f"call_{self.task.turn}",
                name=call.tool,
                arguments=json.dumps(call.arguments),
            )
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


async def test_openai_agents(make_ws: MakeWorkspace) -> None:
    task = ReportTask.on(make_ws)
    agent = Agent(name="writer", model=ScriptedModel(task), tools=task.tools().to("openai-agents"))
    run = await Runner.run(agent, TASK, max_turns=30, run_config=RunConfig(tracing_disabled=True))
    assert run.final_output == ANSWER
    await task.check()


async def test_openai_agents_images(ws: Workspace) -> None:
    await ws.write("/workspace/i.png", b"\x89PNG")
    tool = next(t for t in ws.as_tools().to("openai-agents") if t.name == "readWorkspaceFile")
    context: Any = type("Context", (), {"tool_call_id": "c"})()
    text, image = await tool.on_invoke_tool(context, '{"path": "/workspace/i.png"}')
    assert json.loads(text.text)["kind"] == "binary"
    assert base64.b64decode(image.image_url.partition(",")[2]) == b"\x89PNG"


# -- code that waits


def test_frameworks_that_wait() -> None:
    from crux_workspace import open_workspace_sync

    with open_workspace_sync("memory://") as sws:
        tools = sws.as_tools()
        arguments = {"path": "/workspace/a.md", "content": "one"}

        function = {"name": "writeWorkspaceFile", "arguments": json.dumps(arguments)}
        [answer] = tools.to("openai").answer({"tool_calls": [{"id": "1", "function": function}]})
        assert json.loads(answer["content"])["version"] == 1
        used = {"type": "tool_use", "id": "2", "name": "writeWorkspaceFile", "input": arguments}
        assert tools.to("anthropic").answer({"content": [used]})["content"][0]["is_error"] is False
        item = {"type": "function_call", "call_id": "3", **function}
        form = tools.to("openai")
        assert len(form.for_responses()) == 6
        assert "version" in form.answer_response({"output": [item]})[0]["output"]

        write = next(t for t in tools.to("langchain") if t.name == "writeWorkspaceFile")
        assert json.loads(write.invoke(arguments))["version"] == 4
        assert json.loads(asyncio.run(write.ainvoke(arguments)))["version"] == 5

        async def model(messages: list[ModelMessage], info: AgentInfo) -> PydanticResponse:
            if len(messages) == 1:
                return PydanticResponse([ToolCallPart("writeWorkspaceFile", arguments)])
            return PydanticResponse([TextPart("done")])

        agent = PydanticAgent(FunctionModel(model), tools=tools.to("pydantic-ai"))
        assert asyncio.run(agent.run("write")).output == "done"
        assert len(sws.history("/workspace/a.md")) == 6


# -- what is not installed


def test_an_unknown_form_is_refused(ws: Workspace) -> None:
    for form in ("cobol", None, ["openai"], 5):
        with pytest.raises(InvalidInputError):
            ws.as_tools().to(form)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("form", "package", "extra"),
    [
        ("mcp", "mcp", "mcp"),
        ("langchain", "langchain_core", "langchain"),
        ("pydantic-ai", "pydantic_ai", "pydantic-ai"),
        ("openai-agents", "agents", "openai-agents"),
    ],
)
def test_a_missing_package_names_its_extra(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, form: str, package: str, extra: str
) -> None:
    from crux_workspace.model import extras

    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == package else True)
    assert form in FORMS
    with pytest.raises(UnsupportedError) as caught:
        ws.as_tools().to(form)
    assert caught.value.code == ErrorCode.CAPABILITY_MISSING
    assert f"crux-workspace[{extra}]" in caught.value.message
