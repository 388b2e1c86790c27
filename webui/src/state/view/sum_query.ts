// The parameters that all REST routes that sum over accesses share.
import type { PictureQuery } from '../../net/types';

export type SumQuery = Pick<
  PictureQuery,
  | 'phase'
  | 'from_token'
  | 'to_token'
  | 'from_step'
  | 'to_step'
  | 'from_ns'
  | 'to_ns'
  | 'layers'
  | 'op'
  | 'tensor'
  | 'component'
  | 'kernel'
  | 'kind'
  | 'source'
  | 'clean'
>;
