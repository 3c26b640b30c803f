// Package route lets a load balancer send all that belongs to one run to one
// gateway. It writes mlattr.Route on every resource, after it has split the
// resources whose spans, points or records belong to several runs, and sends
// what has one route in one call, with the route as client metadata.
package route
