import { cases, tolerance } from "../../src/ops/suppress/cases.ts";
import { checkOperation } from "./checkOperation.ts";

checkOperation("suppress", { cases, tolerance });
