"""A run pauses on the gate with its framework's own human-in-the-loop mechanism: the real packages, a scripted model."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import MessagesState

from crux_workspace.agent import (
    Answer,
    PermissionGate,
    PermissionPolicy,
    agent_context,
    local_filesystem,
)
from crux_workspace.agent.frameworks.langgraph import langgraph_tools
from crux_workspace.agent.frameworks.mcp import mcp_server
from crux_workspace.agent.frameworks.openai_agents import answer_openai_agents, openai_agents_tools
from crux_workspace.agent.frameworks.pydantic_ai import pydantic_ai_results, pydantic_ai_tools
from crux_workspace.errors import UnsupportedError
from crux_workspace.tools import ToolSet

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
THREAD = "t"
CALL = {"command": "touch ran; echo done"}


@pytest.fixture
def gate() -> PermissionGate:
    return PermissionGate(
        PermissionPolicy(allow={"bash": ["ls"]}, deny={"bash": ["rm"]}), mode="interactive"
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


@pytest.fixture
def tools(gate: PermissionGate, folder: Path) -> ToolSet:
    return agent_context(local_filesystem(folder), gate=gate, thread_id=THREAD).tools


def ran(folder: Path) -> bool:
    return (folder / "ran").exists()


ANSWERS = pytest.mark.parametrize(
    ("answer", "allowed", "grants"), [("once", True, 0), ("always", True, 1), ("deny", False, 0)]
)


# -- LangGraph


def langgraph_app(
    tools: ToolSet, gate: PermissionGate, calls: list[tuple[str, dict[str, Any]]]
) -> Any:
    """Return a graph whose model makes the calls one after the other and then repeats the last result."""
    from langchain_core.messages import AIMessage
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, StateGraph
    from langgraph.prebuilt import ToolNode

    async def model(state: MessagesState) -> dict[str, Any]:
        done = sum(message.type == "tool" for message in state["messages"])
        if done < len(calls):
            name, arguments = calls[done]
            call = {"name": name, "args": arguments, "id": f"call_{done}", "type": "tool_call"}
            return {"messages": [AIMessage("", tool_calls=[call])]}
        return {"messages": [AIMessage(f"final: {state['messages'][-1].content}")]}

    def route(state: MessagesState) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END

    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", ToolNode(langgraph_tools(tools, gate)))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", route, ["tools", END])
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=InMemorySaver())


@ANSWERS
async def test_a_langgraph_run_pauses_and_goes_on(
    answer: Any, allowed: bool, grants: int, tools: ToolSet, gate: PermissionGate, folder: Path
) -> None:
    from langgraph.types import Command

    calls: list[tuple[str, dict[str, Any]]] = [
        ("runBash", {"command": "ls"}),
        ("runBash", CALL),
        ("readFile", {"path": "missing"}),
    ]
    app = langgraph_app(tools, gate, calls)
    config = {"configurable": {"thread_id": "g"}}
    paused = await app.ainvoke({"messages": [("user", "go")]}, config)
    (interrupt,) = paused["__interrupt__"]
    assert interrupt.value["detail"]["command"] == CALL["command"]
    assert interrupt.value["toolCallId"] == "call_1"
    assert not ran(folder)
    ended = await app.ainvoke(Command(resume=answer), config)
    assert "__interrupt__" not in ended
    assert ran(folder) is allowed
    results = [message for message in ended["messages"] if message.type == "tool"]
    assert ("done" in results[1].content) is allowed
    assert results[1].status == ("success" if allowed else "error")
    assert "FILE_NOT_FOUND" in results[2].content
    assert ended["messages"][-1].content.startswith("final: ")
    assert len(await gate.grants()) == grants
    assert await gate.pending(THREAD) == []


# -- pydantic-ai


@ANSWERS
@pytest.mark.parametrize("plain", [False, True])
async def test_a_pydantic_ai_run_pauses_and_goes_on(
    answer: Any,
    allowed: bool,
    grants: int,
    plain: bool,
    tools: ToolSet,
    gate: PermissionGate,
    folder: Path,
) -> None:
    from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
    from pydantic_ai.messages import (
        ModelMessage,
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
    )
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returns = [
            part
            for message in messages
            for part in message.parts
            if isinstance(part, ToolReturnPart)
        ]
        script = [{"command": "ls"}, CALL]
        if len(returns) < len(script):
            return ModelResponse(
                [ToolCallPart("runBash", script[len(returns)], f"call_{len(returns)}")]
            )
        return ModelResponse([TextPart(f"final: {returns[-1].content}")])

    agent: Any = Agent(
        FunctionModel(model),
        tools=pydantic_ai_tools(tools, gate),
        output_type=[str, DeferredToolRequests],
    )
    paused = await agent.run("go")
    assert isinstance(paused.output, DeferredToolRequests)
    (call,) = paused.output.approvals
    assert paused.output.metadata[call.tool_call_id]["detail"]["command"] == CALL["command"]
    assert not ran(folder)
    if plain and answer != "always":
        results: Any = DeferredToolResults(approvals={call.tool_call_id: allowed})
    else:
        results = await pydantic_ai_results(gate, {call.tool_call_id: answer}, thread_id=THREAD)
    ended = await agent.run(message_history=paused.all_messages(), deferred_tool_results=results)
    assert ended.output.startswith("final: ")
    assert ("done" in ended.output) is allowed
    assert ran(folder) is allowed
    assert len(await gate.grants()) == grants


# -- OpenAI Agents


def openai_model(script: list[tuple[str, dict[str, Any]]]) -> Any:
    from agents import Model, ModelResponse, Usage
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    class Scripted(Model):
        async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
            given = options.get("input", args[1] if len(args) > 1 else [])
            outputs = [
                item
                for item in given
                if isinstance(item, dict) and item.get("type") == "function_call_output"
            ]
            if len(outputs) < len(script):
                name, arguments = script[len(outputs)]
                call_id = f"call_{len(outputs)}"
                item: Any = ResponseFunctionToolCall(
                    arguments=json.dumps(arguments),
                    call_id=call_id,
                    name=name,
                    type="function_call",
                    id=f"fc_{call_id}",
                )
            else:
                text = ResponseOutputText(
                    text=f"final: {outputs[-1]['output']}", type="output_text", annotations=[]
                )
                item = ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
            return ModelResponse(output=[item], usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
            raise NotImplementedError

    return Scripted()


@ANSWERS
@pytest.mark.parametrize("plain", [False, True])
async def test_an_openai_agents_run_pauses_and_goes_on(
    answer: Any,
    allowed: bool,
    grants: int,
    plain: bool,
    tools: ToolSet,
    gate: PermissionGate,
    folder: Path,
) -> None:
    from agents import Agent, RunConfig, Runner

    model = openai_model(
        [("runBash", {"command": "ls"}), ("runBash", CALL), ("runBash", {"command": "rm x"})]
    )
    agent: Any = Agent("a", tools=openai_agents_tools(tools, gate), model=model)
    config = RunConfig(tracing_disabled=True)
    paused = await Runner.run(agent, "go", run_config=config)
    (item,) = paused.interruptions
    assert item.call_id == "call_1"
    assert not ran(folder)
    state = paused.to_state()
    if plain and answer != "always":
        state.approve(item) if allowed else state.reject(item)
    else:
        await answer_openai_agents(gate, state, {"call_1": answer}, thread_id=THREAD)
    ended = await Runner.run(agent, state, run_config=config)
    assert ended.interruptions == []
    listed: list[Any] = ended.to_input_list()
    outputs = [entry["output"] for entry in listed if entry.get("type") == "function_call_output"]
    assert ("done" in str(outputs[1])) is allowed
    assert "PERMISSION_DENIED" in str(outputs[2]), (
        "a denial by a rule is the tool's result, not an interruption"
    )
    assert ran(folder) is allowed
    assert len(await gate.grants()) == grants


# -- MCP


@ANSWERS
async def test_an_mcp_client_is_asked_by_elicitation(
    answer: Any, allowed: bool, grants: int, tools: ToolSet, gate: PermissionGate, folder: Path
) -> None:
    from mcp.client import Client
    from mcp.types import ElicitResult

    asked: list[Any] = []

    async def person(ctx: Any, params: Any) -> ElicitResult:
        asked.append(params)
        if answer == "deny":
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={"decision": answer})

    callback: Any = person
    async with Client(
        mcp_server(tools, gate), elicitation_callback=callback, mode="legacy"
    ) as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == tools.names
        free = await client.call_tool("runBash", {"command": "ls"})
        assert not free.is_error
        result = await client.call_tool("runBash", CALL)
        assert result.is_error is not allowed
        assert ("done" in str(result.content)) is allowed
        unknown = await client.call_tool("nothing", {})
        assert unknown.is_error
    assert ran(folder) is allowed
    assert len(asked) == 1
    assert CALL["command"] in asked[0].message
    assert len(await gate.grants()) == grants


async def test_an_mcp_client_that_cannot_be_asked_gets_the_refusal(
    tools: ToolSet, gate: PermissionGate, folder: Path
) -> None:
    from mcp.client import Client

    async with Client(mcp_server(tools, gate), mode="legacy") as client:
        result = await client.call_tool("runBash", CALL)
        assert result.is_error
        assert "APPROVAL_REQUIRED" in str(result.content)
    assert not ran(folder)
    assert len(await gate.pending(THREAD)) == 1


# -- what they stand on


async def test_a_preview_does_nothing_and_uses_up_nothing(
    tools: ToolSet, gate: PermissionGate, folder: Path
) -> None:
    for arguments, outcome in (
        ({"command": "ls"}, "allow"),
        ({"command": "rm x"}, "deny"),
        (CALL, "interrupt"),
    ):
        assert (await gate.preview(tools["runBash"], arguments, call_id="c")).outcome == outcome
    (waiting,) = await gate.pending(THREAD)
    await gate.resume(THREAD, [Answer(waiting.interrupt_id, "once")])
    for _ in range(2):
        assert (await gate.preview(tools["runBash"], CALL, call_id="c")).allowed
    assert not ran(folder)
    assert (await tools["runBash"].call(CALL, call_id="c")).ok
    assert ran(folder)
    assert (await gate.preview(tools["writeFile"], {"path": "a", "content": "x"})).allowed
    assert not (folder / "a").exists()
    wrapped = gate.wrap(tools)
    assert (await gate.preview(wrapped["writeFile"], {"path": "a", "content": "x"})).allowed
    assert not (folder / "a").exists()


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("langgraph.types", "pydantic_ai", "agents", "mcp.server.lowlevel"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("without")
@pytest.mark.parametrize(
    ("make", "extra"),
    [
        (langgraph_tools, "langgraph"),
        (pydantic_ai_tools, "pydantic-ai"),
        (openai_agents_tools, "openai-agents"),
        (mcp_server, "mcp"),
    ],
)
def test_a_missing_framework_names_the_extra(
    make: Any, extra: str, tools: ToolSet, gate: PermissionGate
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        make(tools, gate)
    assert caught.value.hint == f"Install crux-workspace[{extra}]."
