// All charts, in the order of their pages.
import { ATTENTION } from './pages/attention';
import { CHECKS } from './pages/checks';
import { EXPERTS } from './pages/experts';
import { LENS } from './pages/lens';
import { OVERVIEW } from './pages/overview';
import { REUSE } from './pages/reuse';
import { ROOFLINE } from './pages/roofline';
import type { ChartSpec } from './spec';

export const CHARTS: readonly ChartSpec[] = [
  ...OVERVIEW,
  ...ROOFLINE,
  ...REUSE,
  ...EXPERTS,
  ...ATTENTION,
  ...LENS,
  ...CHECKS,
];
