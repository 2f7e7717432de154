import { cases, tolerance } from "../../src/ops/attention/cases.ts";
import { checkOperation } from "./checkOperation.ts";

checkOperation("attention", { cases, tolerance });
