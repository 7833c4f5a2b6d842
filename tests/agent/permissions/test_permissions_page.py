"""Each sentence of the permissions page that states behaviour, as a test."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from crux_workspace.agent import (
    Answer,
    Approve,
    ClientToolRequest,
    CommandRequest,
    ConstraintContext,
    Decision,
    Delegation,
    DelegationRule,
    Interrupt,
    MemoryRequest,
    PathRequest,
    PermissionGate,
    PermissionPolicy,
    SubagentRequest,
    ThreadPolicy,
    ToolRequest,
    file_permission_store,
    memory_permission_store,
)
from crux_workspace.errors import (
    ApprovalRequiredError,
    ErrorCode,
    InvalidInputError,
    NotFoundError,
    PermissionDeniedError,
)

OUTSIDE = PathRequest("readFile", "/srv/private/notes.md", root="/work")
INSIDE = PathRequest("writeFile", "/work/a.md", root="/work")
COMMAND = CommandRequest("node scripts/fetch.mjs https://example.com/api")
EDGE = SubagentRequest("/support", "researcher", "/support/subagents/researcher", "Find it.")
PATTERN = '["/support","researcher"]'
SUPERSEDE = MemoryRequest("workspace=app|route=/a|user=7", "diet", "m1", "vegan", "vegetarian")


def gate(policy: PermissionPolicy | None = None, **options: Any) -> PermissionGate:
    return PermissionGate(policy, **{"mode": "interactive", **options})


def asked(decision: Decision) -> Interrupt:
    assert decision.outcome == "interrupt"
    assert not decision.allowed
    assert decision.code == ErrorCode.APPROVAL_REQUIRED
    assert decision.interrupt is not None
    return decision.interrupt


async def answered(
    given: PermissionGate, decision: Decision, answer: Any, thread: str | None = None
) -> Decision:
    (found,) = await given.resume(thread, [Answer(asked(decision).interrupt_id, answer)])
    return found


# -- two operations are gated by default, unknown ones pause


async def test_commands_and_paths_outside_are_gated_by_default_and_inside_runs() -> None:
    g = gate()
    assert (await g.check(COMMAND)).outcome == "interrupt"
    for operation in ("readFile", "writeFile", "listDir", "editFile"):
        assert (
            await g.check(PathRequest(operation, "/srv/x", root="/work"))
        ).outcome == "interrupt"
        assert (await g.check(PathRequest(operation, "/work/x", root="/work"))).allowed


async def test_without_a_root_everything_is_outside() -> None:
    assert (await gate().check(PathRequest("readFile", "/work/a.md"))).outcome == "interrupt"


# -- matching


async def test_deny_comes_first_then_allow_then_unknown() -> None:
    g = gate(PermissionPolicy(allow={"bash": ["ls", "rm"]}, deny={"bash": ["rm -rf"]}))
    assert (await g.check(CommandRequest("rm -rf /"))).outcome == "deny"
    assert (await g.check(CommandRequest("rm x"))).outcome == "allow"
    assert (await g.check(CommandRequest("make"))).outcome == "interrupt"


async def test_deny_wins_over_allow_in_any_order() -> None:
    everything: dict[str, list[str]] = {
        "bash": ["ls"],
        "readFile": ["/srv"],
        "tool": ["deploy"],
        "subagent": [PATTERN],
    }
    for policy in (
        PermissionPolicy(allow=everything, deny=everything, approve=["deploy"]),
        PermissionPolicy(
            deny=dict(reversed(everything.items())), allow=everything, approve=["deploy"]
        ),
    ):
        for request in (CommandRequest("ls"), OUTSIDE, ToolRequest("deploy"), EDGE):
            assert (await gate(policy).check(request)).outcome == "deny"


async def test_a_prefix_rule_covers_whole_words_only() -> None:
    g = gate(PermissionPolicy(allow={"bash": ["ls"]}))
    for command in ("ls", "ls -la", "ls workspace/corpus"):
        assert (await g.check(CommandRequest(command))).allowed
    for command in ("lsof", "ls && rm x", "lsx"):
        assert not (await g.check(CommandRequest(command))).allowed


async def test_a_path_rule_covers_the_path_and_what_is_below_by_whole_segments() -> None:
    for rule in ("/srv/log", "/srv/log/"):
        g = gate(PermissionPolicy(allow={"readFile": [rule]}))
        for path in ("/srv/log", "/srv/log/a", "/srv/log/a/b"):
            assert (await g.check(PathRequest("readFile", path))).allowed
        for path in ("/srv/logger/a", "/srv", "/srv/lo"):
            assert not (await g.check(PathRequest("readFile", path))).allowed
        assert not (await g.check(PathRequest("writeFile", "/srv/log/a"))).allowed


async def test_reserved_keys_never_match_by_prefix() -> None:
    g = gate(
        PermissionPolicy(
            allow={"tool": ["deploy"], "subagent": [PATTERN]}, approve=["deployProd", "deploy"],
            delegation=Delegation("approve"),
        )
    )  # fmt: skip
    assert (await g.check(ToolRequest("deploy"))).allowed
    assert not (await g.check(ToolRequest("deployProd"))).allowed
    assert not (await g.check(SubagentRequest("/support", "researcher2", "/x"))).allowed


async def test_deny_rules_hold_inside_the_root_too() -> None:
    g = gate(PermissionPolicy(deny={"writeFile": ["/work/.git"]}))
    for path in ("/work/.git/config", "/work/.git", "/work/x/../.git/hooks/a"):
        decision = await g.check(PathRequest("writeFile", path, root="/work"))
        assert (decision.outcome, decision.rule) == ("deny", "/work/.git")
    assert (await g.check(PathRequest("readFile", "/work/.git/config", root="/work"))).allowed


async def test_edit_file_needs_read_and_write_and_asks_once_for_both() -> None:
    edit = PathRequest("editFile", "/srv/a", root="/work")
    for key in ("readFile", "writeFile"):
        denying = gate(
            PermissionPolicy(deny={key: ["/srv"]}, allow={"readFile": ["/"], "writeFile": ["/"]})
        )
        assert (await denying.check(edit)).outcome == "deny"
        half = gate(PermissionPolicy(allow={key: ["/srv"]}))
        assert (await half.check(edit)).outcome == "interrupt"
    g = gate()
    first = await g.check(edit)
    assert len(await g.pending()) == 1
    await answered(g, first, "always")
    assert {grant.key for grant in await g.grants()} == {"readFile", "writeFile"}
    assert (await g.check(edit)).allowed


# -- configuration, stores


async def test_an_empty_or_blank_pattern_is_refused() -> None:
    for key in ("bash", "readFile", "tool", "memory", "subagent", "clientTool"):
        for pattern in ("", " ", "\t\n"):
            tables: list[Any] = [{"allow": {key: [pattern]}}, {"deny": {key: [pattern]}}]
            for table in tables:
                with pytest.raises(InvalidInputError) as caught:
                    PermissionPolicy(**table)
                assert caught.value.code == ErrorCode.POLICY_INVALID


@pytest.mark.parametrize("key", ["nothing", "editFile", "runBash", "__proto__", "constructor", ""])
def test_an_unknown_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        PermissionPolicy(allow={key: ["x"]})
    assert caught.value.code == ErrorCode.POLICY_INVALID


def test_a_deliberately_broad_pattern_is_accepted() -> None:
    assert PermissionPolicy(allow={"readFile": ["/"]}).allowed["readFile"] == ("/",)


async def test_only_always_persists_and_configured_entries_stay_out_of_the_store(
    tmp_path: Path,
) -> None:
    path = tmp_path / "p.json"
    g = gate(PermissionPolicy(allow={"bash": ["ls"]}), store=file_permission_store(path))
    await g.check(CommandRequest("ls"))
    for answer in ("once", "deny", "cancel"):
        await answered(g, await g.check(COMMAND), answer)
        await g.check(COMMAND)
        await g.forget_thread("default")
        assert await g.grants() == []
    await answered(g, await g.check(COMMAND), "always")
    assert [entry["pattern"] for entry in json.loads(path.read_text())["grants"]] == [
        "node scripts/fetch.mjs"
    ]


async def test_a_sessions_always_never_shadows_a_configured_deny() -> None:
    store = memory_permission_store()
    await answered(one := gate(store=store), await one.check(COMMAND), "always")
    assert (await gate(store=store).check(COMMAND)).allowed
    denying = gate(PermissionPolicy(deny={"bash": ["node"]}), store=store)
    assert (await denying.check(COMMAND)).outcome == "deny"


async def test_store_denials_hold_in_every_mode_but_bypass() -> None:
    store = memory_permission_store({"bash": ["node"], "readFile": ["/srv"]})
    for mode in ("interactive", "non-interactive"):
        for request in (COMMAND, OUTSIDE):
            g = gate(
                PermissionPolicy(allow={"bash": ["node"], "readFile": ["/srv"]}),
                store=store,
                mode=mode,
            )
            assert (await g.check(request)).outcome == "deny"
    assert (await gate(store=store, mode="bypass").check(COMMAND)).allowed


async def test_store_grants_count_in_interactive_mode_only() -> None:
    store = memory_permission_store()
    await store.add("bash", "node")
    assert (await gate(store=store).check(COMMAND)).allowed
    assert (await gate(store=store, mode="non-interactive").check(COMMAND)).outcome == "deny"


async def test_grants_can_be_listed_and_revoked() -> None:
    g = gate()
    await answered(g, await g.check(COMMAND), "always")
    assert (await g.check(COMMAND)).rule == "node scripts/fetch.mjs"
    (grant,) = await g.grants()
    assert await g.revoke(grant.grant_id)
    assert not await g.revoke(grant.grant_id)
    assert (await g.check(COMMAND)).outcome == "interrupt"


# -- modes


async def test_an_unknown_operation_fails_closed_without_a_person_and_names_the_key() -> None:
    for options in ({"mode": "non-interactive"}, {"interruptible": False}):
        headless = gate(mode=options.get("mode", "interactive"))
        policy = PermissionPolicy(approve=["deploy"], delegation=Delegation("approve"))
        strict = gate(policy, mode=options.get("mode", "interactive"))
        for g, request, key in (
            (headless, COMMAND, "bash"),
            (headless, OUTSIDE, "readFile"),
            (strict, ToolRequest("deploy"), "tool"),
            (strict, EDGE, "subagent"),
        ):
            decision = await g.check(
                request, interruptible=bool(options.get("interruptible", True))
            )
            assert decision.outcome == "deny"
            assert decision.reason is not None
            assert f"allow rule for {key}" in decision.reason
            assert await g.pending() == []


async def test_bypass_checks_nothing_and_says_so_loudly(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    policy = PermissionPolicy(
        deny={"bash": ["node"], "readFile": ["/"], "tool": ["deploy"], "clientTool": ["x"]}, approve=[Approve("deploy", False)]
    )  # fmt: skip
    with caplog.at_level(logging.WARNING):
        g = gate(policy, mode="bypass")
    assert "mode=bypass" in capsys.readouterr().err
    assert "mode=bypass" in caplog.text
    for request in (COMMAND, OUTSIDE, ToolRequest("deploy"), ClientToolRequest("x"), SUPERSEDE):
        assert (await g.check(request)).allowed


@pytest.mark.parametrize(
    ("explicit", "environment", "policy", "expected"),
    [
        (None, None, None, "interactive"),
        (None, None, "non-interactive", "non-interactive"),
        (None, "non-interactive", "interactive", "non-interactive"),
        (None, "bypass", "interactive", "bypass"),
        ("interactive", "bypass", None, "interactive"),
        ("non-interactive", "bypass", None, "non-interactive"),
        ("non-interactive", "interactive", None, "non-interactive"),
        ("interactive", "non-interactive", None, "non-interactive"),
        ("bypass", "non-interactive", None, "non-interactive"),
        ("interactive", None, "bypass", "interactive"),
    ],
)
def test_the_environment_wins_over_the_policy_and_may_only_tighten_an_explicit_mode(
    explicit: Any,
    environment: str | None,
    policy: Any,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if environment is None:
        monkeypatch.delenv("CRUX_PERMISSIONS_MODE", raising=False)
    else:
        monkeypatch.setenv("CRUX_PERMISSIONS_MODE", environment)
    assert PermissionGate(PermissionPolicy(mode=policy), mode=explicit).mode == expected


def test_an_unknown_mode_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInputError):
        PermissionPolicy(mode="loose")  # type: ignore[arg-type]
    monkeypatch.setenv("CRUX_PERMISSIONS_MODE", "loose")
    with pytest.raises(InvalidInputError):
        PermissionGate()


# -- per-tool approval


DEPLOY = ToolRequest("deployProd", {"env": "prod", "version": "1.4.2"})


async def test_every_call_of_an_approved_tool_pauses_unless_pre_approved_or_always() -> None:
    g = gate(PermissionPolicy(approve=["deployProd"]))
    decision = await g.check(DEPLOY, call_id="call_deploy_1")
    payload = asked(decision).to_dict()
    assert payload == {
        "interruptId": payload["interruptId"],
        "type": "permission-request",
        "kind": "tool",
        "toolCallId": "call_deploy_1",
        "detail": {
            "toolName": "deployProd",
            "argsPreview": '{"env":"prod","version":"1.4.2"}',
            "suggestedPattern": "deployProd",
        },
    }
    await answered(g, decision, "always")
    assert (await g.check(ToolRequest("deployProd", {"other": 1}))).allowed
    pre = gate(PermissionPolicy(approve=["deployProd"], allow={"tool": ["deployProd"]}))
    assert (await pre.check(DEPLOY)).rule == "deployProd"


async def test_a_tool_that_nothing_names_runs() -> None:
    for mode in ("interactive", "non-interactive"):
        assert (await gate(mode=mode).check(DEPLOY)).allowed


async def test_the_preview_is_cut_at_500_characters_and_never_matched() -> None:
    g = gate(PermissionPolicy(approve=["t"]))
    exact = asked(await g.check(ToolRequest("t", {"a": "x" * (500 - len('{"a":""}'))})))
    assert len(exact.detail["argsPreview"]) == 500
    long = asked(await g.check(ToolRequest("t", {"a": "x" * 500}), thread_id="other"))
    assert long.detail["argsPreview"].endswith("…")
    assert len(long.detail["argsPreview"]) == 501
    odd = asked(await g.check(ToolRequest("t", {"a": object}), thread_id="odd"))
    assert "object" in odd.detail["argsPreview"]


async def test_a_tool_without_always_asks_every_time_and_a_client_that_answers_always_gets_once() -> (
    None
):
    policy = PermissionPolicy(
        approve=["other", Approve("fileFlightPlan", allow_always=False)],
        allow={"tool": ["fileFlightPlan"]},
    )
    store = memory_permission_store()
    await store.add("tool", "fileFlightPlan")
    g = gate(policy, store=store)
    call = ToolRequest("fileFlightPlan", {"id": 1})
    decision = await g.check(call, call_id="c1")
    interrupt = asked(decision)
    assert interrupt.to_dict()["allowAlways"] is False
    assert interrupt.to_dict("ag-ui")["responseSchema"]["enum"] == ["once", "deny"]
    assert (await answered(g, decision, "always")).answer == "once"
    assert len(await g.grants()) == 1
    assert (await g.check(call, call_id="c1")).allowed
    assert (await g.check(call, call_id="c2")).outcome == "interrupt"
    denying = gate(PermissionPolicy(approve=[Approve("x", False)], deny={"tool": ["x"]}))
    assert (await denying.check(ToolRequest("x"))).outcome == "deny"
    headless = gate(policy, store=store, mode="non-interactive")
    assert (await headless.check(call)).outcome == "deny"
    assert (await gate(policy, mode="bypass").check(call)).allowed


async def test_always_is_offered_by_default() -> None:
    interrupt = asked(await gate(PermissionPolicy(approve=["t"])).check(ToolRequest("t")))
    assert "allowAlways" not in interrupt.to_dict()
    assert interrupt.to_dict("ag-ui")["responseSchema"]["enum"] == ["once", "always", "deny"]


# -- constraints


async def verdict(found: object, **options: Any) -> Decision:
    def predicate(arguments: Mapping[str, Any], context: ConstraintContext) -> object:
        if isinstance(found, Exception):
            raise found
        return found

    policy = PermissionPolicy(constrain={"t": predicate}, **options)
    return await gate(policy).check(ToolRequest("t", {"env": "prod"}))


async def test_a_constraint_runs_denies_or_asks_and_everything_else_denies() -> None:
    assert (await verdict(True)).allowed
    text = await verdict("Only staging here.")
    assert (text.outcome, text.reason) == ("deny", "Only staging here.")
    assert (await verdict(Approve(reason="prod"))).outcome == "interrupt"
    for odd in (False, None, 1, 0, {}, {"approve": True}, ValueError("secret"), object(), Approve):
        decision = await verdict(odd)
        assert decision.outcome == "deny", odd
        assert decision.reason is not None
        assert "constraint check failed" in decision.reason
        assert "secret" not in decision.reason


async def test_a_constraint_on_a_tool_wins_over_its_approve_entry() -> None:
    assert (await verdict(True, approve=["t"])).allowed
    assert (await verdict("no", approve=["t"])).outcome == "deny"
    decision = await verdict(Approve(), approve=[Approve("t", allow_always=False)])
    assert asked(decision).allow_always


async def test_a_constraint_may_be_async_and_sees_arguments_and_context() -> None:
    seen: list[Any] = []

    async def predicate(arguments: Mapping[str, Any], context: ConstraintContext) -> object:
        seen.append((dict(arguments), context.name, context.thread_id, context.call_id))
        return arguments["env"] == "staging" or Approve(reason="prod needs a person")

    g = gate(PermissionPolicy(constrain={"deploy": predicate}))
    assert (
        await g.check(ToolRequest("deploy", {"env": "staging"}), thread_id="t", call_id="c")
    ).allowed
    assert seen == [({"env": "staging"}, "deploy", "t", "c")]
    interrupt = asked(await g.check(ToolRequest("deploy", {"env": "prod"})))
    assert interrupt.detail["reason"] == "prod needs a person"


async def test_an_always_for_an_escalation_covers_later_escalations_of_the_tool() -> None:
    g = gate(PermissionPolicy(constrain={"t": lambda arguments, _: Approve(reason=str(arguments))}))
    await answered(g, await g.check(ToolRequest("t", {"n": 1})), "always")
    assert (await g.check(ToolRequest("t", {"n": 2}))).allowed


# -- subagents


async def test_dispatch_is_allowed_by_default_and_denied_by_an_allowlist() -> None:
    assert (await gate().check(EDGE)).allowed
    listed = Delegation("deny", {"researcher": DelegationRule("allow")})
    g = gate(PermissionPolicy(delegation=listed))
    assert (await g.check(EDGE)).allowed
    other = await g.check(SubagentRequest("/support", "writer", "/x"))
    assert (other.outcome, other.code) == ("deny", ErrorCode.DELEGATION_DENIED)


async def test_a_dispatch_that_needs_approval_pauses_with_the_edge_and_the_reason() -> None:
    rule = DelegationRule("approve", "It may send customer context.")
    g = gate(PermissionPolicy(delegation=Delegation(rules={"researcher": rule})))
    decision = await g.check(EDGE, thread_id="root", call_id="parent-task-call-1")
    payload = asked(decision).to_dict()
    assert payload == {
        "interruptId": payload["interruptId"],
        "type": "permission-request",
        "kind": "subagent",
        "callId": "parent-task-call-1",
        "threadId": "root",
        "detail": {
            "parentRouteId": "/support",
            "subagentName": "researcher",
            "subagentRouteId": "/support/subagents/researcher",
            "inputPreview": "Find it.",
            "reason": "It may send customer context.",
            "suggestedPattern": PATTERN,
        },
    }


async def test_always_approves_one_edge_only_whatever_input_and_target() -> None:
    g = gate(PermissionPolicy(delegation=Delegation("approve")))
    await answered(g, await g.check(EDGE), "always")
    assert (
        await g.check(SubagentRequest("/support", "researcher", "/moved", "other input"))
    ).allowed
    for other in (
        SubagentRequest("/sales", "researcher", "/x"),
        SubagentRequest("/support", "writer", "/x"),
    ):
        assert (await g.check(other)).outcome == "interrupt"


async def test_an_edge_can_be_pre_approved_and_a_deny_entry_wins() -> None:
    pre = PermissionPolicy(allow={"subagent": [PATTERN]}, delegation=Delegation("approve"))
    assert (await gate(pre).check(EDGE)).allowed
    both = PermissionPolicy(allow={"subagent": [PATTERN]}, deny={"subagent": [PATTERN]})
    assert (await gate(both).check(EDGE)).code == ErrorCode.DELEGATION_DENIED


@pytest.mark.parametrize(
    "spelling",
    [
        '["/support", "researcher"]',
        ' [ "/support" ,\n"researcher"]',
        '["/support","r\\u0065searcher"]',
    ],
)
async def test_an_edge_is_the_same_however_its_json_is_written(spelling: str) -> None:
    pre = PermissionPolicy(allow={"subagent": [spelling]}, delegation=Delegation("approve"))
    assert (await gate(pre).check(EDGE)).rule == PATTERN
    assert (
        await gate(PermissionPolicy(deny={"subagent": [spelling]})).check(EDGE)
    ).outcome == "deny"


@pytest.mark.parametrize(
    "rule",
    [
        "researcher",
        '["/support"]',
        '["/support","researcher","x"]',
        '["/support",1]',
        '{"a":1}',
        "[" * 9_999,
    ],
)
def test_a_rule_that_is_no_edge_could_match_nothing_and_is_refused(rule: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        PermissionPolicy(deny={"subagent": [rule]})
    assert refused.value.code == ErrorCode.POLICY_INVALID


async def test_an_unapproved_dispatch_fails_closed_headless_and_static_denials_survive_bypass() -> (
    None
):
    approve = PermissionPolicy(delegation=Delegation("approve"))
    assert (
        await gate(approve, mode="non-interactive").check(EDGE)
    ).code == ErrorCode.DELEGATION_DENIED
    assert (await gate(approve, mode="bypass").check(EDGE)).allowed
    for rule in (
        DelegationRule("deny", "Not today."),
        DelegationRule("constrain", predicate=lambda *_: "Not today."),
    ):
        for mode in ("interactive", "non-interactive", "bypass"):
            policy = PermissionPolicy(delegation=Delegation(rules={"researcher": rule}))
            decision = await gate(policy, mode=mode).check(EDGE)
            assert (decision.code, decision.reason) == (ErrorCode.DELEGATION_DENIED, "Not today.")


async def test_a_delegation_constraint_sees_input_and_routes_and_fails_closed() -> None:
    seen: list[Any] = []

    def predicate(arguments: Mapping[str, Any], context: ConstraintContext) -> object:
        seen.append((arguments["input"], context.parent_route, context.name, context.route))
        raise ValueError("internal detail")

    rule = DelegationRule("constrain", predicate=predicate)
    g = gate(PermissionPolicy(delegation=Delegation(rules={"researcher": rule})))
    decision = await g.check(EDGE)
    assert decision.code == ErrorCode.DELEGATION_DENIED
    assert "internal detail" not in str(decision.reason)
    assert seen == [("Find it.", "/support", "researcher", "/support/subagents/researcher")]


async def test_an_unknown_child_is_not_available() -> None:
    g = gate()
    assert (
        await g.check(SubagentRequest("/support", "nobody", None))
    ).code == ErrorCode.SUBAGENT_UNKNOWN
    with pytest.raises(NotFoundError):
        await g.require(SubagentRequest("/support", "nobody", None))


@pytest.mark.parametrize(
    "build",
    [
        lambda: PermissionPolicy(approve=["task"]),
        lambda: PermissionPolicy(approve=[Approve("task")]),
        lambda: PermissionPolicy(constrain={"task": lambda *_: True}),
        lambda: PermissionPolicy(allow={"tool": ["task"]}),
        lambda: PermissionPolicy(deny={"tool": ["task"]}),
    ],
)
def test_task_is_refused_in_every_tool_policy_field(build: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        build()
    assert caught.value.code == ErrorCode.POLICY_INVALID


# -- client tools


async def test_unmatched_client_tools_run_in_every_mode_and_are_never_offered_always() -> None:
    for mode in ("interactive", "non-interactive", "bypass"):
        g = gate(mode=mode)
        assert (await g.check(ClientToolRequest("openPanel"), interruptible=False)).allowed
        assert await g.pending() == []


async def test_a_client_tool_deny_matches_exactly_and_never_inherits_tool_rules() -> None:
    g = gate(
        PermissionPolicy(
            deny={"clientTool": ["open"], "tool": ["deployProd"]}, approve=["deployProd"]
        )
    )
    refused = await g.check(ClientToolRequest("open"))
    assert (refused.outcome, refused.code) == ("deny", ErrorCode.PERMISSION_DENIED)
    for name in ("openEverything", "deployProd"):
        assert (await g.check(ClientToolRequest(name))).allowed


async def test_the_decision_on_a_client_tool_is_taken_once_before_the_call_parks() -> None:
    from crux_workspace.storage import MemoryRecordStore

    records = MemoryRecordStore()
    before = gate(interrupts=records)
    assert (await before.check(ClientToolRequest("open"), thread_id="t", call_id="c1")).allowed
    after = gate(PermissionPolicy(deny={"clientTool": ["open"]}), interrupts=records)
    assert (await after.check(ClientToolRequest("open"), thread_id="t", call_id="c1")).allowed
    assert (
        await after.check(ClientToolRequest("open"), thread_id="t", call_id="c2")
    ).outcome == "deny"


# -- memory


async def test_only_replacing_a_memory_asks() -> None:
    g = gate(PermissionPolicy(memory_writes="ask"))
    fresh = MemoryRequest("workspace=app|route=/a", "diet", None, None, "vegan")
    same = MemoryRequest("workspace=app|route=/a", "diet", "m1", "vegan", "vegan")
    assert (await g.check(fresh)).allowed
    assert (await g.check(same)).allowed
    detail = asked(await g.check(SUPERSEDE)).detail
    assert (detail["oldId"], detail["oldContent"], detail["newContent"]) == (
        "m1",
        "vegan",
        "vegetarian",
    )
    assert (await gate().check(SUPERSEDE)).allowed


async def test_memory_answers_once_always_and_deny() -> None:
    g = gate(PermissionPolicy(memory_writes="ask"))
    await answered(g, await g.check(SUPERSEDE), "once")
    assert (await g.check(SUPERSEDE)).allowed
    denied = await answered(g, await g.check(SUPERSEDE), "deny")
    assert not denied.allowed
    assert "The memory m1 of diet is kept." in str(denied.reason)
    await answered(g, await g.check(SUPERSEDE), "always")
    assert [grant.pattern for grant in await g.grants()] == ["workspace=app|route=/a|"]
    other_user = MemoryRequest("workspace=app|route=/a|user=8", "x", "m2", "a", "b")
    assert (await g.check(other_user)).allowed
    assert (
        await g.check(MemoryRequest("workspace=app|route=/ab", "x", "m", "a", "b"))
    ).outcome == "interrupt"


async def test_memory_ask_lets_through_headless_but_honours_a_deny() -> None:
    assert (
        await gate(PermissionPolicy(memory_writes="ask")).check(SUPERSEDE)
    ).outcome == "interrupt"
    headless = gate(PermissionPolicy(memory_writes="ask"), mode="non-interactive")
    assert (await headless.check(SUPERSEDE)).allowed
    assert (
        await gate(PermissionPolicy(memory_writes="ask")).check(SUPERSEDE, interruptible=False)
    ).allowed
    policy = PermissionPolicy(memory_writes="ask", deny={"memory": ["workspace=app|route=/a|"]})
    for mode, allowed in (("interactive", False), ("non-interactive", False), ("bypass", True)):
        found = await gate(policy, mode=mode).check(SUPERSEDE)
        assert found.allowed is allowed
        assert allowed or "is denied by a rule. The memory m1 is kept." in str(found.reason)


async def test_a_memory_rule_ends_in_a_bar_so_that_a_route_is_no_prefix_of_another() -> None:
    g = gate(PermissionPolicy(memory_writes="ask", allow={"memory": ["workspace=app|route=/s"]}))
    assert (await g.check(MemoryRequest("workspace=app|route=/s|x=1", "i", "m", "a", "b"))).allowed
    assert not (
        await g.check(MemoryRequest("workspace=app|route=/support", "i", "m", "a", "b"))
    ).allowed


# -- the interrupt payload


async def test_the_command_payload_is_the_pages() -> None:
    payload = asked(await gate().check(COMMAND, call_id="call_bash_1")).to_dict()
    assert payload == {
        "interruptId": payload["interruptId"],
        "type": "permission-request",
        "kind": "command",
        "toolCallId": "call_bash_1",
        "detail": {"command": COMMAND.command, "suggestedPattern": "node scripts/fetch.mjs"},
    }
    assert str(payload["interruptId"]).startswith("perm-")


async def test_the_path_payload_is_the_pages() -> None:
    payload = asked(await gate().check(OUTSIDE)).to_dict()
    assert payload == {
        "interruptId": payload["interruptId"],
        "type": "permission-request",
        "kind": "path",
        "detail": {
            "operation": "readFile",
            "path": "/srv/private/notes.md",
            "suggestedPattern": "/srv/private/",
        },
    }


async def test_every_prompt_carries_the_id_of_the_call_that_it_is_about() -> None:
    policy = PermissionPolicy(
        memory_writes="ask", approve=["deployProd"], delegation=Delegation("approve")
    )
    for request, name in (
        (COMMAND, "toolCallId"), (OUTSIDE, "toolCallId"), (DEPLOY, "toolCallId"), (SUPERSEDE, "toolCallId"), (EDGE, "callId"),
    ):  # fmt: skip
        payload = asked(await gate(policy).check(request, call_id="call_7")).to_dict()
        assert payload[name] == "call_7"
        assert {"toolCallId", "callId"} & set(payload) == {name}
        assert not {"toolCallId", "callId"} & set(
            asked(await gate(policy).check(request)).to_dict()
        )


async def test_always_is_offered_to_nobody_where_the_tool_has_none_and_headless_needs_bypass() -> (
    None
):
    policy = PermissionPolicy(approve=[Approve("pay", allow_always=False)])
    pay = ToolRequest("pay")
    assert (await gate(policy, mode="bypass").check(pay)).allowed
    closed = await gate(policy, mode="non-interactive").check(pay)
    assert (closed.outcome, closed.code) == ("deny", ErrorCode.PERMISSION_DENIED)
    denied = PermissionPolicy(
        approve=[Approve("pay", allow_always=False)],
        deny={"tool": ["pay"]},
        allow={"tool": ["pay"]},
    )
    assert (await gate(denied).check(pay)).outcome == "deny"


@pytest.mark.parametrize(
    ("operation", "path", "pattern"),
    [
        ("readFile", "/srv/a/b.md", "/srv/a/"), ("writeFile", "/x", "/x"), ("listDir", "/etc", "/etc/"),
        ("listDir", "/etc/ssl/", "/etc/ssl/"),
        ("listDir", "/", None),
    ],
)  # fmt: skip
async def test_a_suggestion_is_the_folder_and_never_the_root(
    operation: Any, path: str, pattern: str | None
) -> None:
    g = gate()
    decision = await g.check(PathRequest(operation, path))
    interrupt = asked(decision)
    assert interrupt.detail["suggestedPattern"] == pattern
    assert interrupt.allow_always is (pattern is not None)
    await answered(g, decision, "always")
    again = await g.check(PathRequest(operation, path))
    assert again.allowed
    assert bool(await g.grants()) is (pattern is not None)


@pytest.mark.parametrize(
    "command",
    [
        "ls", "npm install x", "  npm   install x", "FOO=1 make all", "cd x && make", "git push --force", "sudo apt install x",
        "timeout 5 make test", "find . -exec rm {} +", "bash -c 'ls; rm x'", "python -c 'print(1)'", "xargs -n 1 rm", "ls | wc -l",
        "'my tool' 'a b'", "tar --checkpoint-action=exec='sh x' -cf a b", "env A=1 make", "make > out.txt",
        "cat < in.txt | sort > /srv/out.txt",
    ],
)  # fmt: skip
async def test_answering_always_lets_the_same_request_pass_next_time(command: str) -> None:
    g = gate()
    request = CommandRequest(command, root="/work")
    decision = await g.check(request)
    assert asked(decision).allow_always, decision
    await answered(g, decision, "always")
    again = await g.check(request, thread_id="another")
    assert again.allowed
    assert again.answer is None


@pytest.mark.parametrize(
    "command",
    ["ls 'a", "rm $X", "$X", "f() { ls; }; f", "eval $X", "ls > $X", " ", "((1))", "echo $(date)"],
)
async def test_always_is_not_offered_for_what_cannot_be_judged(command: str) -> None:
    g = gate(PermissionPolicy(deny={"bash": ["rm -rf"]}))
    interrupt = asked(await g.check(CommandRequest(command, root="/work")))
    assert not interrupt.allow_always
    assert interrupt.detail["suggestedPattern"] is None


async def test_always_for_one_command_does_not_allow_another_program() -> None:
    g = gate()
    for command, other in (
        ("timeout 5 make test", "timeout 5 rm x"),
        ("bash -c 'ls'", "bash -c 'rm x'"),
        ("find . -exec ls {} +", "find . -exec rm {} +"),
        ("python -c 'print(1)'", "python -c 'x'"),
    ):
        await answered(g, await g.check(CommandRequest(command)), "always")
        assert (await g.check(CommandRequest(other))).outcome == "interrupt"
        await g.forget_thread("default")


# -- redirections are file operations


async def test_a_redirection_is_judged_like_the_file_operation_it_is(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    policy = PermissionPolicy(
        allow={"bash": ["echo", "cat", "cd"], "writeFile": ["/srv/ok"]}, deny={"writeFile": [f"{root}/.git"], "readFile": ["/srv/secret"]},
    )  # fmt: skip
    g = gate(policy)

    async def outcome(command: str) -> str:
        return (await g.check(CommandRequest(command, root=str(root)), thread_id=command)).outcome

    for command in (
        "echo x > a",
        "echo x >> sub/a",
        "echo x > /dev/null",
        "echo x 2>&1",
        "echo x > /srv/ok/a",
        f"cat < {root}/a",
    ):
        assert await outcome(command) == "allow", command
    for command in (
        "echo x > .git/config",
        "echo x > ./sub/../.git/a",
        "cat < /srv/secret",
        "cat 0< /srv/secret/a",
    ):
        assert await outcome(command) == "deny", command
    for command in (
        "echo x > /srv/no",
        "echo x > ../a",
        "echo x > out/a",
        "cat < /etc/passwd",
        "cd / && echo x > a",
        "echo x > $F",
        "echo x &> /srv/a",
        "echo x <> /srv/a",
        "echo x > ~/a",
    ):
        assert await outcome(command) == "interrupt", command


# -- per-thread permissions


async def test_a_threads_allow_replaces_and_its_deny_adds() -> None:
    own = {
        "t1": ThreadPolicy(allow={"bash": ["make"]}),
        "t2": ThreadPolicy(deny={"bash": ["make"]}),
    }
    app = PermissionPolicy(allow={"bash": ["ls"]}, deny={"bash": ["curl"]})
    store = memory_permission_store()
    await store.add("bash", "npm")
    g = gate(app, store=store, thread_policy=own.get)

    async def outcome(command: str, thread: str) -> str:
        return (await g.check(CommandRequest(command), thread_id=thread)).outcome

    assert [await outcome(c, "t1") for c in ("make", "ls", "npm", "curl")] == [
        "allow",
        "interrupt",
        "interrupt",
        "deny",
    ]
    assert [await outcome(c, "t2") for c in ("make", "ls", "npm", "curl")] == [
        "deny",
        "interrupt",
        "interrupt",
        "deny",
    ]
    assert [await outcome(c, "t3") for c in ("make", "ls", "npm", "curl")] == [
        "interrupt",
        "allow",
        "allow",
        "deny",
    ]


async def test_an_always_in_such_a_thread_is_its_own_and_goes_with_it() -> None:
    g = gate(thread_policy=lambda thread: ThreadPolicy() if thread.startswith("own") else None)
    await answered(g, await g.check(COMMAND, thread_id="own-1"), "always", "own-1")
    (grant,) = await g.grants("own-1")
    assert grant.thread_id == "own-1"
    assert (await g.check(COMMAND, thread_id="own-1")).allowed
    for other in ("own-2", "other"):
        assert (await g.check(COMMAND, thread_id=other)).outcome == "interrupt"
    await g.adopt("own-child", "own-1")
    assert (await g.check(COMMAND, thread_id="own-child")).allowed
    await g.forget_thread("own-1")
    assert await g.grants("own-1") == []
    assert (await g.check(COMMAND, thread_id="own-1")).outcome == "interrupt"


async def test_the_mode_is_the_applications_and_app_denials_always_add() -> None:
    own = ThreadPolicy(allow={"bash": ["node"]})
    assert (
        await gate(mode="bypass", thread_policy=lambda _: own).check(CommandRequest("x"))
    ).allowed
    store = memory_permission_store({"bash": ["node"]})
    assert (await gate(store=store, thread_policy=lambda _: own).check(COMMAND)).outcome == "deny"
    denying = gate(PermissionPolicy(deny={"bash": ["node"]}), thread_policy=lambda _: own)
    assert (await denying.check(COMMAND)).outcome == "deny"
    assert (await gate(mode="non-interactive", thread_policy=lambda _: own).check(COMMAND)).allowed


async def test_a_blank_pattern_of_a_thread_is_refused_and_the_root_is_accepted() -> None:
    bad = gate(thread_policy=lambda _: ThreadPolicy(allow={"readFile": [" "]}))
    with pytest.raises(InvalidInputError):
        await bad.check(OUTSIDE)
    broad = gate(thread_policy=lambda _: ThreadPolicy(allow={"readFile": ["/"]}))
    assert (await broad.check(OUTSIDE)).allowed


async def test_a_grant_longer_than_4096_characters_is_not_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    g = gate()
    long = PathRequest("readFile", "/srv/" + "a/" * 2100 + "x")
    with caplog.at_level(logging.WARNING):
        found = await answered(g, await g.check(long), "always")
    assert found.allowed
    assert await g.grants() == []
    assert "not kept" in caplog.text
    assert (await g.check(long)).allowed
    assert (await g.check(long)).outcome == "interrupt"


async def test_denials_and_waiting_are_typed_errors_in_code() -> None:
    g = gate(PermissionPolicy(deny={"bash": ["rm"]}))
    with pytest.raises(PermissionDeniedError) as denied:
        await g.require(CommandRequest("rm x"))
    assert denied.value.details == {"rule": "rm"}
    assert isinstance(denied.value, PermissionError)
    with pytest.raises(ApprovalRequiredError) as waiting:
        await g.require(COMMAND)
    assert waiting.value.interrupt == (await g.pending())[0]
    assert (await g.require(INSIDE)).allowed


@pytest.mark.parametrize("given", ["no", 0, None, "false"])
def test_whether_always_is_offered_is_said_by_true_or_false_alone(given: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Approve("deploy", allow_always=given)
    assert caught.value.code == ErrorCode.POLICY_INVALID
