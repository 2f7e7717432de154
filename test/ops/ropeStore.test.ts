import { cases, tolerance } from "../../src/ops/ropeStore/cases.ts";
import { checkOperation } from "./checkOperation.ts";

checkOperation("ropeStore", { cases, tolerance });
