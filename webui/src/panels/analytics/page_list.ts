// The pages of Analytics: also the search has them, which is loaded before the panel.
export const PAGES = [
  'overview',
  'roofline',
  'reuse',
  'experts',
  'attention',
  'lens',
  'checks',
] as const;
export type PageId = (typeof PAGES)[number];

export const PAGE_TITLES: Readonly<Record<PageId, string>> = {
  overview: 'Overview',
  roofline: 'Roofline',
  reuse: 'Hot and cold',
  experts: 'Experts',
  attention: 'Attention',
  lens: 'Logit lens',
  checks: 'Checks',
};

// What one may search for.
export const PAGE_WORDS: Readonly<Record<PageId, string>> = {
  overview: 'dashboard statistics slowest tokens layers op types tensor types kernels disk buffer prompt generation',
  roofline: 'memory bandwidth bound bandwidth computation optimise first',
  reuse: 'cache miss ratio lru pin belady reuse distance memory',
  experts: 'moe load entropy turnover routing co-activation cache',
  attention: 'heads kv cache window recurrent state',
  lens: 'probability rank entropy surprise alternatives of tokens, after each layer, residual stream, values',
  checks: 'determinism validation compression conditions prediction',
}; // prettier-ignore
