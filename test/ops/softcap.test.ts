import { cases, tolerance } from "../../src/ops/softcap/cases.ts";
import { checkOperation } from "./checkOperation.ts";

checkOperation("softcap", { cases, tolerance });
