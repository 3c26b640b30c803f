// Package label answers one question: what would Prometheus lose of a metric's
// point, and of what is added to it?
//
// Two attribute keys can become one label, some labels are reserved, and a
// point whose clock is wrong or whose text is not UTF-8 is dropped. What stands
// behind ml_enrich can repair that, as the shipped configurations do. Only here
// a point is seen as its client sent it, so it is counted here.
package label
