// All views, in the order of the navigation.

import { ApprovalsView } from "./approvals.js";
import { ArtifactsView } from "./artifacts.js";
import { CommitsView } from "./commits.js";
import { FileView } from "./file.js";
import { SearchView } from "./search.js";
import { TracesView } from "./traces.js";
import { UsageView } from "./usage.js";

export const VIEWS = [
  { id: "files", name: "Files", icon: "files", key: "f", component: FileView },
  { id: "search", name: "Search", icon: "search", key: "s", component: SearchView },
  { id: "commits", name: "Commits", icon: "git-commit-horizontal", key: "c", component: CommitsView },
  { id: "artifacts", name: "Artifacts", icon: "package", key: "a", component: ArtifactsView },
  { id: "approvals", name: "Approvals", icon: "shield-question-mark", key: "p", component: ApprovalsView },
  { id: "traces", name: "Traces", icon: "activity", key: "v", component: TracesView },
  { id: "usage", name: "Usage", icon: "gauge", key: "u", component: UsageView },
];
