"""Stores that are wrong on purpose, each with the check that must reject it: the tests of the kits."""

from __future__ import annotations

from crux_workspace.storage.assets import AssetStore
from crux_workspace.storage.minimal import MinimalStore
from crux_workspace.storage.records import RecordStore
from crux_workspace.testing import broken_assets as assets
from crux_workspace.testing import broken_commits as commits
from crux_workspace.testing import broken_minimal as minimal
from crux_workspace.testing import broken_plans as plans
from crux_workspace.testing import broken_reads as reads

__all__ = ["BROKEN_ASSET_STORES", "BROKEN_MINIMAL_STORES", "BROKEN_RECORD_STORES"]

BROKEN_RECORD_STORES: dict[type[RecordStore], str] = {
    reads.SkipsAbsentKeys: "R-011",
    reads.BodiesInGet: "R-012",
    reads.SharesMutableValues: "R-014",
    reads.ComparesByUtf16: "R-020",
    reads.MatchesLikePatterns: "R-021",
    reads.FirstBoundIncluded: "R-023",
    reads.MissesLastPage: "R-024",
    reads.BodiesInScan: "R-027",
    reads.RepeatsPrefixes: "R-101",
    reads.FilterHidesBodiless: "R-111",
    reads.StopsAtShortPages: "R-112",
    reads.SequencesOnce: "R-090",
    reads.MatchesPartitionPatterns: "R-091",
    commits.CommitsInTwoSteps: "R-080",
    commits.EmptyBodyIsNone: "R-015",
    commits.WritesPartOfRefused: "R-030",
    commits.GapAfterRefusal: "R-030",
    commits.ForgetsRevisions: "R-031",
    commits.RestartsRevisions: "R-032",
    commits.EmptyIncludesHighEnd: "R-033",
    commits.AcceptsAnyIncarnation: "R-034",
    commits.IgnoresEpochs: "R-035",
    commits.IgnoresSweeps: "R-036",
    commits.IgnoresCeilings: "R-037",
    commits.CeilingRefusesAnything: "R-037",
    commits.TimeGoesBack: "R-042",
    commits.DeletesAfterPuts: "R-043",
    commits.MarksOnce: "R-044",
    commits.LosesSelfTakenBodies: "R-051",
    commits.TakesInOrder: "R-052",
    commits.TakesFromNothing: "R-057",
    commits.KeepsSixteenChanges: "R-056",
    commits.DropLeavesRecords: "R-094",
    plans.QuietBySpelling: "R-061",
    plans.IgnoresRenameSources: "R-062",
    plans.TrimmedLogIsQuiet: "R-063",
    plans.ErasedNamesAreQuiet: "R-067",
    plans.IgnoresLogBodies: "R-064",
    plans.ReadsFirstLogBody: "R-065",
    plans.WrapsPlanErrors: "R-071",
    plans.NeverPlansAgain: "R-073",
    plans.LocksNothing: "R-074",
    plans.IgnoresItsOwnCeilings: "R-122",
}
"""Record stores and the check that rejects each; other checks may reject it too."""

BROKEN_ASSET_STORES: dict[type[AssetStore], str] = {
    assets.KeepsBrokenStreams: "A-010",
    assets.HashesLastChunk: "A-012",
    assets.IgnoresMaxBytes: "A-014",
    assets.ReadsStreamsWhole: "A-015",
    assets.KeepsCancelledPuts: "A-016",
    assets.MissingIsKeyError: "A-020",
    assets.DeletesOnce: "A-021",
    assets.DeletesAllButTheLast: "A-025",
    assets.SharesEqualBytes: "A-021",
    assets.StreamsInOnePiece: "A-030",
    assets.LengthIsTheEnd: "A-031",
    assets.FailsBeyondTheEnd: "A-032",
    assets.MissingIsEmpty: "A-033",
    assets.DecodesKeys: "A-041",
    assets.ForgetsLastListing: "A-051",
    assets.ListsFoldersOnly: "A-052",
}
"""Asset stores and the check that rejects each; other checks may reject it too."""

BROKEN_MINIMAL_STORES: dict[type[MinimalStore], str] = {
    minimal.LosesEveryTenthPut: "M-001",
    minimal.AnswersFromYesterday: "M-001",
    minimal.TakesFoldersForKeys: "M-002",
    minimal.NumbersAreFloats: "M-003",
    minimal.FoldsCase: "M-004",
    minimal.TruncatesLargeValues: "M-005",
    minimal.SharesWhatItReturns: "M-006",
    minimal.MergesObjects: "M-010",
    minimal.KeepsMutableValues: "M-011",
    minimal.DeletesBelow: "M-012",
    minimal.ForgetsLastPage: "M-020",
    minimal.PrefixIsAPattern: "M-021",
    minimal.CreateOverwrites: "M-030",
    minimal.CreateLooksThenPuts: "M-031",
}
