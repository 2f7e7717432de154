import { cases, tolerance } from "../../src/ops/add/cases.ts";
import { checkOperation } from "./checkOperation.ts";

checkOperation("add", { cases, tolerance });
