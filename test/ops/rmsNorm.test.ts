import { cases, tolerance } from "../../src/ops/rmsNorm/cases.ts";
import { checkOperation } from "./checkOperation.ts";

checkOperation("rmsNorm", { cases, tolerance });
