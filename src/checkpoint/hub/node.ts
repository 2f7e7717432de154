/**
 * The Hugging Face hub for programs that run in Node.
 *
 * @module
 */
export {
  type CachedModel,
  type CachedRepository,
  listCached,
  type Removal,
  removeCached,
  showCached,
} from "./manage.node.ts";
export { formatModelId, isModelId, type ModelId, parseModelId } from "./modelId.ts";
export type { Progress } from "./progress.ts";
export { type HubModel, pull, resolveHubModel } from "./pull.node.ts";
export { type HubOptions, type HubSettings, hubSettings } from "./settings.node.ts";
