import { cases, tolerance } from "../../src/ops/gate/cases.ts";
import { checkOperation } from "./checkOperation.ts";

checkOperation("gate", { cases, tolerance });
